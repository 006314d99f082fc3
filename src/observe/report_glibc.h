/* report_glibc.h: glibc's reports (mallinfo2, malloc_info, malloc_stats) about this heap.
 *
 *   system    resident or possibly so, Big blocks left out:  system = in use + free
 *   in use    live blocks, by what they could hold; those in threads' caches are free
 *   free      cached: in magazines and quarantines, which stand for glibc's fast bins;
 *             and the rest, which stands for its other bins
 *   mmap      Big blocks (above 1 MiB; in hardened mode above 64 KiB, or 32 KiB), which stand
 *             for its mappings of their own
 *
 * No thread is stopped, no latch taken and no system call made: records of other threads, which are
 * never unmapped, are copied as they are.  While threads run, figures may be some batches apart; at
 * rest they are exact. Visits every slab. */
#ifndef HAK_OBSERVE_REPORT_GLIBC_H
#define HAK_OBSERVE_REPORT_GLIBC_H

#include "base/text.h"

struct glibc_figures {
  uint64_t system_bytes, system_peak_bytes, in_use_bytes;
  uint64_t free_blocks, free_bytes;     /* without the cached ones */
  uint64_t cached_blocks, cached_bytes; /* by threads */
  uint64_t keep_bytes;                  /* free bytes that malloc_trim would give back */
  uint64_t mmap_blocks, mmap_bytes, mmap_peak_blocks, mmap_peak_bytes;
};

void glibc_figures_take(struct glibc_figures *figures);

/* The XML of malloc_info. */
void report_as_malloc_info(struct text *text);
/* The text of malloc_stats, followed by hakmem's own report. */
void report_as_malloc_stats(struct text *text);

#endif
