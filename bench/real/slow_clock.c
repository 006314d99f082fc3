/* SPDX-License-Identifier: MIT
 *
 * slow_clock: preloaded under callgrind, which makes a program some fifty times as slow.  Its clocks run as much slower, so that
 * an allocator does as much by time (purging, looking at the clock) as it would do otherwise. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOWER = 50, NS_PER_S = 1000000000 };

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (syscall(SYS_clock_gettime, clock, now) != 0) return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) return 0;
  long long ns = ((long long)now->tv_sec * NS_PER_S + now->tv_nsec) / SLOWER;
  now->tv_sec = ns / NS_PER_S;
  now->tv_nsec = ns % NS_PER_S;
  return 0;
}
