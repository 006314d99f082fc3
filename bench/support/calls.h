/* SPDX-License-Identifier: MIT
 *
 * calls.h: malloc and free with each call timed by itself: the processor time that the calling thread
 * spent in it, which other load on the machine does not disturb, and the wall time, in which waiting for
 * other threads shows as well.  For loads where single calls are long: the clocks cost a microsecond.
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include "blocks.h"
#include "ticks.h"

/* All zero before the first call.  Written by one thread. */
struct calls {
  uint64_t count, cpu_ns;               /* of all calls */
  uint64_t worst_cpu_ns, worst_wall_ns; /* of one call; not necessarily the same one */
};

struct call_start {
  uint64_t wall_ns, cpu_ns;
};

static inline struct call_start call_starts(void) {
  return (struct call_start){.wall_ns = ticks_monotonic_ns(),
                             .cpu_ns = ticks_cpu_ns(CLOCK_THREAD_CPUTIME_ID)};
}

static inline void call_ends(struct calls *calls, struct call_start start) {
  uint64_t cpu_ns = ticks_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - start.cpu_ns;
  uint64_t wall_ns = ticks_monotonic_ns() - start.wall_ns;
  calls->count++;
  calls->cpu_ns += cpu_ns;
  calls->worst_cpu_ns = cpu_ns > calls->worst_cpu_ns ? cpu_ns : calls->worst_cpu_ns;
  calls->worst_wall_ns = wall_ns > calls->worst_wall_ns ? wall_ns : calls->worst_wall_ns;
}

static inline unsigned char *timed_malloc(struct calls *calls, size_t size) {
  struct call_start start = call_starts();
  unsigned char *block = block_new(size);
  call_ends(calls, start);
  return block;
}

static inline void timed_free(struct calls *calls, unsigned char *block) {
  struct call_start start = call_starts();
  free(block);
  call_ends(calls, start);
}

static inline void calls_merge(struct calls *into, const struct calls *other) {
  into->count += other->count;
  into->cpu_ns += other->cpu_ns;
  if (other->worst_cpu_ns > into->worst_cpu_ns) {
    into->worst_cpu_ns = other->worst_cpu_ns;
  }
  if (other->worst_wall_ns > into->worst_wall_ns) {
    into->worst_wall_ns = other->worst_wall_ns;
  }
}

static inline void sleep_ms(uint64_t ms) {
  struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&pause, NULL);
}

#endif
