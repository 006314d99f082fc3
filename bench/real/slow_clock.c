/* SPDX-License-Identifier: MIT
 *
 * slow_clock: preloaded under callgrind, which makes a program about a hundred times as slow. Its
 * clocks are its processor time divided by that, so that an allocator does about as much by time
 * (purging, looking at the clock) as it would do otherwise, and rather less: counts of one machine
 * and load hold on another. libhakmem.so asks the kernel itself: SYSTEM_CALL_AT says where
 * (tests/kernel_calls.h). */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel_calls.h"

enum { NS_PER_S = 1000000000, SLOWER = 200 };

static long long now_ns(clockid_t clock) {
  struct timespec now;
  if (syscall(SYS_clock_gettime, clock, &now) != 0) return -1;
  return (long long)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The clocks since boot go on from where they are: a time before an earlier one would make all that
 * waits for its time due at once. */
int clock_gettime(clockid_t clock, struct timespec *now) {
  static long long began_ns;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    return (int)syscall(SYS_clock_gettime, clock, now);
  if (began_ns == 0) began_ns = now_ns(CLOCK_MONOTONIC);
  bool is_processors = clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
  long long ns = now_ns(is_processors ? clock : CLOCK_PROCESS_CPUTIME_ID);
  if (ns < 0) return -1;
  ns = ns / SLOWER + (is_processors ? 0 : began_ns);
  now->tv_sec = ns / NS_PER_S;
  now->tv_nsec = ns % NS_PER_S;
  return 0;
}

static long of_hakmem(long number, long a, long b, long c, long d, long e, long f) {
  int before = errno;
  long answer = number == SYS_clock_gettime ? clock_gettime((clockid_t)a, (struct timespec *)b)
                                            : syscall(number, a, b, c, d, e, f);
  if (answer == -1) answer = -errno;
  errno = before;
  return answer;
}

__attribute__((constructor)) static void begin(void) {
  if (getenv("SYSTEM_CALL_AT")) take_kernel_calls(of_hakmem);
}
