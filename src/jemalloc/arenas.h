/* arenas.h: jemalloc's arenas, classes and figures, as programs see them.
 *
 *   arena 0               malloc's heaps, and named ones whose numbers are too large
 *   arena n               named heap n, as `arenas.create` makes one
 *   MALLOCX_TCACHE_NONE   moves blocks (cache/moving.h) for this call, past the magazines; any
 *                         other thread cache is the thread's own magazines
 *   classes               jemalloc's with a quantum of 8 bytes, as programs compute them: 8,
 *                         16 … 64, then four for each doubling. Those up to 14 KiB are bins; one
 *                         that hakmem lacks is empty; blocks of fitted classes count in the bin
 *                         above */
#ifndef HAK_JEMALLOC_ARENAS_H
#define HAK_JEMALLOC_ARENAS_H

#include "hakmem/hakmem.h"
#include "map/size_class.h"

enum { JE_BINS = 39, JE_LARGE_CLASSES = 196, JE_QUANTUM = 8, JE_SLAB_BYTES = 16384 };

INLINE size_t je_class_bytes(size_t class) {
  size_t step = class - JE_QUANTUM;
  return class < JE_QUANTUM ? JE_QUANTUM * (class + 1) : (5 + step % 4) << (4 + step / 4);
}
/* The bin of blocks; JE_BINS: they are larger. */
INLINE size_t je_bin_of(size_t block_bytes) {
  size_t last = block_bytes - 1, step = last < 64 ? 3 : highest_bit(last) - 2; /* its logarithm */
  size_t bin = 4 * (step - 3) + (last >> step);
  return bin < JE_BINS ? bin : JE_BINS;
}
/* Blocks in a slab of the bin, as jemalloc's slabs are smaller than hakmem's: a slab that is hardly
 * used hides little from programs that compare slabs with blocks. */
INLINE size_t je_regions(size_t bin) {
  enum { FEWEST = 4 };
  size_t bytes = je_class_bytes(bin);
  return bytes < JE_SLAB_BYTES / FEWEST ? JE_SLAB_BYTES / bytes : FEWEST;
}
INLINE size_t je_slab_bytes(size_t bin) { return je_regions(bin) * je_class_bytes(bin); }

/* ARENAS_ALL stands for all, as does their number; ARENAS_GONE for those that were destroyed. */
enum { ARENAS_END = 4095, ARENAS_ALL, ARENAS_GONE };
size_t je_arena_count(void);
bool je_arena_exists(size_t number);
/* NULL of arena 0, and of one that is not there; the next one after *number, which it advances. */
hak_heap *je_heap_at(size_t number);
hak_heap *je_next_heap(uint32_t *number);
/* The heap that flags of mallocx name; NULL: the thread's own, as where the arena is not there. */
hak_heap *je_heap_of_flags(int flags);

/* For mallctl: errnos, or values and *error. */
size_t je_arena_make(int *error);
int je_arena_reset(size_t number);
int je_arena_destroy(size_t number);
size_t je_arena_of_thread(void);
int je_arena_use(size_t number);
bool je_thread_caches(void);
int je_thread_set_caching(bool is_on);

/* In bytes; then BIN_FIGURES for each bin. An arena beyond 0 has the first four, as of now. */
enum {
  FIGURE_SMALL, /* live in slabs of bins */
  FIGURE_LARGE, /* live, larger */
  FIGURE_ACTIVE,
  FIGURE_RESIDENT,
  FIGURE_DIRTY,
  FIGURE_MAPPED,
  FIGURE_RETAINED,
  FIGURE_METADATA,
  FIGURE_LIVE,
  FIGURE_BINS,
  BIN_REGIONS = 0,
  BIN_SLABS,
  BIN_NOT_FULL,
  BIN_FIGURES,
  FIGURE_COUNT = FIGURE_BINS + JE_BINS * BIN_FIGURES
};

/* Samples the figures, unless it took long a short time ago; 0. */
int figures_sample(void);
/* Set by a program that asks which blocks to move. */
extern ATOMIC(bool) figures_for_moving;
/* How often they were sampled: once at least. */
uint64_t figures_epoch(void);
size_t figure(size_t arena, size_t which);
INLINE size_t bin_figure(size_t arena, size_t bin, size_t which) {
  return figure(arena, FIGURE_BINS + bin * BIN_FIGURES + which);
}

#endif
