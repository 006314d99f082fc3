/* argv[1] forks (1,000 in the real run), by the function that argv[2] names, by two threads while
 * four others allocate and free in every tier.  The child frees inherited blocks, allocates in
 * every tier, runs a thread and exits, half of them through exit(). A child that hangs is killed by
 * its alarm and fails the test. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "api/random.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

enum { WORKERS = 4, FORKERS = 2, SLOTS = 100, INHERITED = 64, CHILD_LIMIT_S = 5 };

static atomic_bool stop;
static void *inherited[INHERITED];

static size_t size_of_inherited(size_t i) { return tier_sizes[i * 7 % TIER_SIZES]; }

/* The first page tells whose a block is; touching all of each would only measure page faults. */
static size_t stamped(size_t bytes) { return bytes < 4 * KIB ? bytes : 4 * KIB; }

static void *work(void *number) {
  static void *slots[WORKERS][SLOTS];
  void **mine = slots[(size_t)number];
  uint64_t random = random_seed((size_t)number);
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
    /* A neighbour's block as often as an own one: remote frees are under way at the fork too. */
    size_t slot = random_below(&random, SLOTS);
    void *fresh = MUST(malloc(tier_sizes[random_below(&random, TIER_SIZES)]));
    *(char *)fresh = 1;
    void **target = random_below(&random, 2) ? mine : slots[random_below(&random, WORKERS)];
    free(__atomic_exchange_n(&target[slot], fresh, __ATOMIC_ACQ_REL));
  }
  return NULL;
}

static void use_every_tier(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    void *block = MUST(malloc(tier_sizes[i]));
    stamp_write(block, stamped(tier_sizes[i]), i);
    CHECK(stamp_holds(block, stamped(tier_sizes[i]), i));
    free(block);
  }
}

static void *thread_in_child(void *half) {
  for (size_t i = (size_t)half; i < INHERITED; i += 2) {
    CHECK(stamp_holds(inherited[i], stamped(size_of_inherited(i)), i));
    free(inherited[i]);
  }
  use_every_tier();
  return NULL;
}

static void child(size_t number) {
  alarm(CHILD_LIMIT_S);
  use_every_tier();
  pthread_t thread = thread_start(thread_in_child, (void *)1);
  thread_in_child((void *)0);
  thread_join(thread);
  if (number % 2 == 0) exit(0);
  _exit(0);
}

/* POSIX 2024: glibc before 2.34 lacks it.  NOLINTNEXTLINE: its name is what it is */
__attribute__((weak)) pid_t _Fork(void);
static pid_t clone_bare(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static pid_t (*make_child)(void);

static void *fork_many(void *forks) {
  for (size_t i = 0; i < (size_t)forks; i++) {
    pid_t pid = make_child();
    CHECK(pid >= 0);
    if (pid == 0) child(i);
    child_join(pid);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  make_child = strcmp(argv[2], "fork") == 0    ? fork
               : strcmp(argv[2], "_Fork") == 0 ? _Fork
               : strcmp(argv[2], "clone") == 0 ? clone_bare
                                               : NULL;
  CHECK_MSG(make_child, "no function %s", argv[2]);
  size_t forks_each = strtoul(argv[1], NULL, 10) / FORKERS;
  pthread_t workers[WORKERS], forkers[FORKERS];
  for (size_t i = 0; i < INHERITED; i++) {
    inherited[i] = MUST(malloc(size_of_inherited(i)));
    stamp_write(inherited[i], stamped(size_of_inherited(i)), i);
  }
  for (size_t i = 0; i < WORKERS; i++) workers[i] = thread_start(work, (void *)i);
  for (size_t i = 0; i < FORKERS; i++) forkers[i] = thread_start(fork_many, (void *)forks_each);
  for (size_t i = 0; i < FORKERS; i++) thread_join(forkers[i]);
  atomic_store(&stop, true);
  for (size_t i = 0; i < WORKERS; i++) thread_join(workers[i]);
  for (size_t i = 0; i < INHERITED; i++) {
    CHECK(stamp_holds(inherited[i], stamped(size_of_inherited(i)),
                      i)); /* the children freed copies */
    free(inherited[i]);
  }
  return 0;
}
