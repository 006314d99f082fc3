/* SPDX-License-Identifier: MIT
 *
 * measure.h: the clock, the counters and the one result line of a benchmark.
 *
 *   set-up, warm-up
 *   measure_start(seconds)          clock, page faults, CPU time
 *     loop until measure_expired()  (or for a fixed amount of work)
 *   measure_stop()
 *   tear-down
 *   measure_report(...)             one line of key=value pairs on standard output
 *
 * CPU time and page faults are those of the process and of its children that were waited for.
 *
 * Environment:
 *   BENCH_PROVE=1      adds malloc_from= and free_from=, the files that serve the two calls
 *   BENCH_STATS_DIR=D  if the allocator is hakmem, its counters at measure_start and measure_stop
 *                      are written to D/start.json and D/stop.json (for untimed runs)
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

/* The counts that a benchmark keeps itself. */
struct tally {
  uint64_t ops;     /* the divisor of ns_per_op, within start and stop; each program defines it */
  uint64_t mallocs; /* calls of malloc, realloc … in the whole process, set-up included */
  uint64_t frees;   /* calls of free in the whole process, tear-down included */
  uint64_t busy_ns; /* 0: ns_per_op is wall time; else the sum of each operation's time */
};

static inline void tally_add(struct tally *sum, const struct tally *part) {
  sum->ops += part->ops;
  sum->mallocs += part->mallocs;
  sum->frees += part->frees;
  sum->busy_ns += part->busy_ns;
}

void measure_start(double seconds);

/* True once the seconds of measure_start have passed.  A call costs about 30 ns: ask every hundred
 * operations or so.  Any thread may ask. */
bool measure_expired(void);

void measure_stop(void);

/* A field of /proc/self/status in KiB: "VmRSS" is the resident memory now, "VmHWM" its peak.  -1
 * when the kernel does not tell.  Allocates nothing. */
long measure_status_kib(const char *field);

/* Resident memory at measure_stop. */
long measure_stop_rss_kib(void);

/* `details` is a printf format of the program's own pairs, "threads=4 …". */
__attribute__((format(printf, 3, 4))) void measure_report(const char *program,
                                                          const struct tally *tally,
                                                          const char *details, ...);

#endif
