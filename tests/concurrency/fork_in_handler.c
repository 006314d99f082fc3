/* argv[1] forks by a signal handler that interrupts a thread wherever it is in malloc or free,
 * while another allocates beside it. The child returns from the handler, goes on with what was
 * interrupted, allocates in every tier, runs a thread and exits. Whoever hangs is killed by its
 * alarm. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api/random.h"
#include "api/sizes.h"
#include "concurrency/threads.h"

enum { SLOTS = 64, LIMIT_S = 60, TURNS_IN_CHILD = 200, BURST = 400 };

static atomic_bool stop;
static atomic_size_t forks_done;
static volatile sig_atomic_t is_child;
static void *slots[2][SLOTS]; /* both threads exchange theirs */

static void turn(uint64_t *random) {
  void *fresh = MUST(malloc(tier_sizes[random_below(random, TIER_SIZES)]));
  *(char *)fresh = 1;
  void **target = &slots[random_below(random, 2)][random_below(random, SLOTS)];
  free(__atomic_exchange_n(target, fresh, __ATOMIC_ACQ_REL));
}

static void turns(uint64_t *random) {
  for (unsigned count = 0; count < TURNS_IN_CHILD; count++) turn(random);
}

/* More of a size than a magazine holds. */
static void burst(size_t size) {
  void *blocks[BURST];
  for (unsigned at = 0; at < BURST; at++) CHECK((blocks[at] = malloc(tier_sizes[size])) != NULL);
  for (unsigned at = 0; at < BURST; at++) free(blocks[at]);
}

static void *thread_in_child(void *unused) {
  uint64_t random = random_seed(7);
  turns(&random);
  return unused;
}

static void *be_interrupted(void *unused) {
  uint64_t random = random_seed(1);
  while (!atomic_load(&stop)) {
    turn(&random);
    burst(random_below(&random, TIER_SIZES / 2));
    if (!is_child) continue;
    turns(&random);
    thread_run(thread_in_child, NULL);
    _exit(0);
  }
  return unused;
}

static void *work(void *unused) {
  uint64_t random = random_seed(2);
  while (!atomic_load(&stop)) turn(&random);
  return unused;
}

static void on_signal(int signal) {
  int status;
  (void)signal;
  pid_t pid = fork();
  if (pid == 0) {
    alarm(LIMIT_S);
    is_child = 1;
    return;
  }
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) abort();
  atomic_fetch_add(&forks_done, 1);
}

int main(int argument_count, char **arguments) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  size_t forks = argument_count == 2 ? strtoul(arguments[1], NULL, 10) : 100;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  alarm(LIMIT_S);
  pthread_t interrupted = thread_start(be_interrupted, NULL), worker = thread_start(work, NULL);
  for (size_t count = 0; count < forks; count++) {
    CHECK(pthread_kill(interrupted, SIGUSR1) == 0);
    while (atomic_load(&forks_done) <= count) sched_yield();
  }
  atomic_store(&stop, true);
  thread_join(interrupted);
  thread_join(worker);
  return 0;
}
