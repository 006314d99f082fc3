/* SPDX-License-Identifier: MIT
 *
 * ticks.h: a clock for single calls: the processor's time stamp counter on x86-64, CLOCK_MONOTONIC
 * elsewhere.
 */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ticks_monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Processor time of the calling thread, or of all threads of the process. */
static inline uint64_t ticks_cpu_ns(clockid_t whose) {
  struct timespec now;
  clock_gettime(whose, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The fences keep what is timed between the two readings. */
static inline uint64_t ticks_now(void) {
#ifdef __x86_64__
  __builtin_ia32_lfence();
  uint64_t ticks = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return ticks;
#else
  return ticks_monotonic_ns();
#endif
}

/* Nanoseconds of a tick, measured for 20 ms against CLOCK_MONOTONIC. */
static inline double ticks_ns(void) {
  enum { CALIBRATION_NS = 20000000 };
  uint64_t start_ns = ticks_monotonic_ns(), start = ticks_now(), now_ns;
  do {
    now_ns = ticks_monotonic_ns();
  } while (now_ns - start_ns < CALIBRATION_NS);
  return (double)(now_ns - start_ns) / (double)(ticks_now() - start);
}

#endif
