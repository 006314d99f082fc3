/* threads.h: thread calls and forks that must succeed. */
#ifndef TESTS_CONCURRENCY_THREADS_H
#define TESTS_CONCURRENCY_THREADS_H

#include <pthread.h>
#include <sys/wait.h>

#include "api/check.h"

static inline pthread_t thread_start(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0);
  return thread;
}

/* Attributes for thousands of threads, or where memory is short; a machine with large pages may
 * need more. */
static inline pthread_attr_t threads_with_stacks_of(size_t bytes) {
  pthread_attr_t attributes;
  long least_bytes = sysconf(_SC_THREAD_STACK_MIN);
  if (least_bytes > 0 && bytes < (size_t)least_bytes) bytes = (size_t)least_bytes;
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setstacksize(&attributes, bytes) == 0);
  return attributes;
}

static inline void thread_join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

static inline void thread_run(void *(*body)(void *), void *argument) {
  thread_join(thread_start(body, argument));
}

/* Threads run body(0), body(1), … together, all to their ends. */
static inline void threads_run(size_t count, void *(*body)(void *)) {
  enum { THREADS_RUN_MAX = 32 };
  pthread_t threads[THREADS_RUN_MAX];
  CHECK(count <= THREADS_RUN_MAX);
  for (size_t i = 0; i < count; i++) threads[i] = thread_start(body, (void *)i);
  for (size_t i = 0; i < count; i++) thread_join(threads[i]);
}

/* What fork returned in the parent. */
static inline void child_join(pid_t child) {
  int status;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_MSG(status == 0, "the child ended with status %#x", (unsigned)status);
}

#endif
