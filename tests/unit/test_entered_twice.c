/* A thread that comes to a latch or a lock which it has itself: a signal handler has interrupted it
 * there and forks, or calls malloc; or its child of vfork was killed there. */
#include "owners.h"

static struct lock lock = {.rank = LOCK_RANK_RANGES};
static struct counters counters;

CHILD_TEST(fork_with_the_latch) {
  latch_take(&mine);
  latch_fork_begin(&mine); /* waits for no thread */
  REQUIRE(!latch_try(&mine));
  latch_fork_end(&mine);
  REQUIRE(!latch_try(&mine)); /* the thread that was interrupted goes on with it */
  latch_give(&mine);
  REQUIRE(latch_try(&mine));
}

static int in_child(void) {
  uint32_t before = thread_number();
  thread_number_forget();
  REQUIRE(!lock_reset_in_child(&lock)); /* its data is this thread's still */
  REQUIRE(thread_number() != before && load_relaxed(&lock.word) == thread_number());
  lock_give(&lock);
  REQUIRE(!load_relaxed(&lock.word));
  return 0;
}

BARE_TEST(fork_with_a_lock) {
  lock_take(&lock, &counters);
  pid_t child = fork();
  if (child == 0) _exit(in_child());
  require_child_succeeded(child);
  lock_give(&lock);
}

/* A thread forks that has never asked for its number, in a child of a fork: the inherited number is
 * not its own. */
BARE_TEST(fork_without_a_number) {
  uint32_t number = thread_number();
  thread_number_forget();            /* after the first fork */
  store_relaxed(&lock.word, number); /* of another thread, which has got that number again */
  thread_number_forget();            /* after the second */
  REQUIRE(lock_reset_in_child(&lock) && !load_relaxed(&lock.word));
}

#define SAID "hakmem: deadlock avoided: malloc re-entered", "signal handler", "vfork"

REPORT_TEST(latch_twice, SAID) {
  latch_take(&mine);
  latch_take(&mine);
}

REPORT_TEST(latch_of_a_killed_child, SAID) {
  pid_t child = vfork();
  if (child == 0) {
    latch_take(&mine);
    _exit(0); /* as if killed */
  }
  REQUIRE(child > 0 && waitpid(child, NULL, 0) == child);
  latch_take(&mine);
}

REPORT_TEST(lock_twice, SAID) {
  lock_take(&lock, &counters);
  lock_take(&lock, &counters);
}
