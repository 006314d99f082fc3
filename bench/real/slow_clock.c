/* SPDX-License-Identifier: MIT
 *
 * slow_clock: preloaded under callgrind, which makes a program fifty to a hundred times as slow.
 * Its clocks are its processor time divided by that, so that an allocator does as much by time
 * (purging, looking at the clock) as it would do otherwise, also beside other programs. A loop
 * of known length tells how slow this machine is with callgrind: counts of one machine hold on
 * another. libhakmem.so asks the kernel itself: SYSTEM_CALL_AT says where
 * (tests/kernel_calls.h). */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel_calls.h"

enum { NS_PER_S = 1000000000, SINCE_BOOT_S = 1000, LOOPS = 7, STEPS = 100000, LOOP_NS = 32500 };

static long long worked_ns(clockid_t clock) {
  struct timespec now;
  if (syscall(SYS_clock_gettime, clock, &now) != 0) return -1;
  return (long long)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int by_value(const void *one, const void *other) {
  return *(const int *)one - *(const int *)other;
}

/* How many times as long a loop takes as it would without callgrind: the median of several. */
static double measured(void) {
  int took[LOOPS];
  for (int i = 0; i < LOOPS; i++) {
    long long began = worked_ns(CLOCK_THREAD_CPUTIME_ID);
    for (volatile int left = STEPS; left > 0; left--) continue;
    took[i] = (int)(worked_ns(CLOCK_THREAD_CPUTIME_ID) - began);
  }
  qsort(took, LOOPS, sizeof took[0], by_value);
  return (double)took[LOOPS / 2] / LOOP_NS;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static double slower;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    return (int)syscall(SYS_clock_gettime, clock, now);
  if (slower == 0) slower = measured();
  clockid_t worked = clock == CLOCK_THREAD_CPUTIME_ID ? clock : CLOCK_PROCESS_CPUTIME_ID;
  long long ns = worked_ns(worked);
  if (ns < 0) return -1;
  ns = (long long)((double)ns / slower);
  now->tv_sec = ns / NS_PER_S + (clock == worked ? 0 : SINCE_BOOT_S);
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
