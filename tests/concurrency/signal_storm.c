/* Signals at a high rate on every thread during a mixed load: the kernel's timer, and a thread that
 * sends to each of the others.  The handlers allocate nothing, but use the stack and errno as any
 * code does; what they interrupt (a fast path, a slow one, a system call of the library) goes on
 * unharmed. argv[1]: milliseconds. */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "concurrency/shadow.h"

enum { WORKERS = 4, TIMER_US = 100, STACK_USED_BYTES = 2000, SIGNALS_MIN = 2000 };

static atomic_bool stop;
static atomic_ulong sent, timed;

static void on_signal(int number) {
  int saved_errno = errno;
  volatile char local[STACK_USED_BYTES];
  for (size_t i = 0; i < sizeof local; i += 64) local[i] = (char)number;
  atomic_fetch_add(number == SIGALRM ? &timed : &sent, 1);
  errno = EBADMSG;
  errno = saved_errno;
}

static void *work(void *seed) {
  uint64_t random = random_seed((size_t)seed);
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) shadow_step(&random);
  return NULL;
}

static void *send_to_all(void *workers) {
  while (!atomic_load(&stop)) {
    for (size_t i = 0; i < WORKERS; i++)
      CHECK(pthread_kill(((pthread_t *)workers)[i], SIGUSR1) == 0);
    usleep(TIMER_US);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  pthread_t workers[WORKERS];
  struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: calls are cut short too */
  CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
  for (size_t i = 0; i < WORKERS; i++) workers[i] = thread_start(work, (void *)i);
  pthread_t sender = thread_start(send_to_all, workers);
  struct itimerval often = {{0, TIMER_US}, {0, TIMER_US}}, never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  struct timespec rest = {strtol(argv[1], NULL, 10) / 1000,
                          strtol(argv[1], NULL, 10) % 1000 * 1000000};
  while (nanosleep(&rest, &rest) != 0) CHECK(errno == EINTR);
  atomic_store(&stop, true);
  thread_join(sender);
  for (size_t i = 0; i < WORKERS; i++) thread_join(workers[i]);
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  shadow_release_all();
  unsigned long signals = atomic_load(&sent) + atomic_load(&timed);
  CHECK_MSG(signals > SIGNALS_MIN && timed > 0, "only %lu signals", signals);
  return 0;
}
