/* A thread allocates in every tier while it holds the lock of fork_handlers.c; the main thread
 * forks and waits for that lock.  If hakmem held its own already, both would wait for ever.
 * argv[1] says who starts the thread: the program (pthread, c11), or the C library for itself
 * (timer). */
#include <semaphore.h>
#include <signal.h>
#include <threads.h>
#include <time.h>

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { LIMIT_S = 30, FORK_NEEDS_US = 50000, ROUNDS = 20 };

extern pthread_mutex_t library_lock;
static sem_t is_locked, has_ended;

static void use_every_tier(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    char *block = MUST(malloc(tier_sizes[i]));
    block[tier_sizes[i] - 1] = 1;
    free(block);
  }
}

static void allocate_under_lock(void) {
  CHECK(pthread_mutex_lock(&library_lock) == 0);
  CHECK(sem_post(&is_locked) == 0);
  usleep(FORK_NEEDS_US);
  for (int round = 0; round < ROUNDS; round++) use_every_tier();
  CHECK(pthread_mutex_unlock(&library_lock) == 0);
  CHECK(sem_post(&has_ended) == 0);
}

static void *as_pthread(void *unused) {
  allocate_under_lock();
  return unused;
}

static int as_c11_thread(void *unused) {
  (void)unused;
  allocate_under_lock();
  return 0;
}

static void as_timer(union sigval unused) {
  (void)unused;
  allocate_under_lock();
}

static void start_timer(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = as_timer};
  struct itimerspec soon = {.it_value.tv_nsec = 1};
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
}

static void start(const char *starter) {
  thrd_t thread;
  if (strcmp(starter, "timer") == 0)
    start_timer();
  else if (strcmp(starter, "c11") == 0)
    CHECK(thrd_create(&thread, as_c11_thread, NULL) == thrd_success);
  else
    thread_start(as_pthread, NULL);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  alarm(LIMIT_S);
  use_every_tier();
  CHECK(sem_init(&is_locked, 0, 0) == 0 && sem_init(&has_ended, 0, 0) == 0);
  start(argv[1]);
  CHECK(sem_wait(&is_locked) == 0);
  pid_t pid = fork();
  alarm(LIMIT_S);
  if (pid == 0) {
    use_every_tier();
    thread_run(as_pthread, NULL);
    _exit(0);
  }
  child_join(pid);
  CHECK(sem_wait(&has_ended) == 0);
  return 0;
}
