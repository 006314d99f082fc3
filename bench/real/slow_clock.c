/* SPDX-License-Identifier: MIT
 *
 * slow_clock: preloaded under callgrind, which makes a program some fifty times as slow.  Its clocks are its processor time divided by
 * that, so that an allocator does as much by time (purging, looking at the clock) as it would do otherwise, also beside other programs. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOWER = 50, NS_PER_S = 1000000000, SINCE_BOOT_S = 1000 };

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    return (int)syscall(SYS_clock_gettime, clock, now);
  clockid_t worked = clock == CLOCK_THREAD_CPUTIME_ID ? clock : CLOCK_PROCESS_CPUTIME_ID;
  if (syscall(SYS_clock_gettime, worked, now) != 0) return -1;
  long long ns = ((long long)now->tv_sec * NS_PER_S + now->tv_nsec) / SLOWER;
  now->tv_sec = ns / NS_PER_S + (clock == worked ? 0 : SINCE_BOOT_S);
  now->tv_nsec = ns % NS_PER_S;
  return 0;
}
