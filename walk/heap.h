/* heap.h: glibc's heap as it was found: layout, arenas, and the regions of addresses that they use.
 *
 * main_arena lies in the C library's data, or in a static program's; its `next` leads through all
 * arenas and back.  The main arena takes its memory by sbrk, in [heap]; the others, as well as
 * their own records, from heaps of 64 MiB that begin with a heap_info. */
#ifndef HAK_WALK_HEAP_H
#define HAK_WALK_HEAP_H

#include "target.h"

enum {
  BINS_BYTES = 254 * 8, /* 127 pairs of fd and bk */
  HEADER_BYTES = 16,    /* of a chunk: the size of a free one before it, its own size */
  MINIMUM_BYTES = 32,
  CHUNK_ALIGNMENT = 16,
  FIRST_BINS = 10, /* fastbins */
  NO_FASTBINS_BELOW = 96,
};
enum { WAS_IN_USE = 1, IS_MMAPPED = 2, NOT_MAIN = 4, FLAGS = 7 }; /* WAS_IN_USE: the chunk before */

enum category { LIVE, FREE, WHOLE, TOP, CACHED, HEADERS, UNUSED, CATEGORIES };

struct account {
  uint64_t live_bytes, live_chunks, free_bytes, free_chunks, top_bytes;
  uint64_t tcache_bytes, tcache_chunks, fastbin_bytes, fastbin_chunks;
  uint64_t foreign_bytes, unknown_bytes, top_whole;
  uint64_t resident[CATEGORIES]; /* FREE includes WHOLE until the output */
};

struct arena {
  uint64_t address, top, system_bytes, max_system_bytes, threads;
  bool is_main, is_contiguous;
  struct account account;
};

/* A range of chunks without a gap that malloc made: [heap], a heap of 64 MiB, or what the main
 * arena took by mmap where sbrk failed. */
struct region {
  uint64_t mapped_begin, begin, end, mapped_end, walked_to;
  size_t arena;
  uint64_t heap_info; /* 0: the main arena's */
};

struct layout {
  uint64_t bins_offset, heap_info_bytes, heap_bytes;
  uint64_t tcache_bytes; /* of its chunk; 0: none was found */
  bool is_safe_linked;
  char version[16];
};

/* malloc's parameters (mp_), as far as they are needed; 0 if they were not found. */
struct parameters {
  uint64_t address, sbrk_base, mmapped_bytes, tcache_count;
  uint64_t mmaps;
  uint64_t trim_unit; /* of top: a page, or a huge one */
};

struct mmapped {
  uint64_t chunk, usable, begin, bytes, resident;
  bool is_cached;
};

struct heap {
  struct target *target;
  struct layout layout;
  struct parameters parameters;
  struct arena *arenas;
  size_t arena_count;
  struct region *regions; /* by address */
  size_t region_count;
  struct mmapped *mmapped; /* by address until the output */
  size_t mmapped_count;
};

void heap_find(struct heap *heap, struct target *target);
void version_find(struct heap *heap, uint64_t data);
void parameters_find(struct heap *heap);
void regions_find(struct heap *heap);
void mmapped_find(struct heap *heap);
void region_add(struct heap *heap, const struct region *region);
const struct region *region_of(const struct heap *heap, uint64_t address);
/* The end of the region's chunks, and where its arena's top begins: UINT64_MAX if it lies
 * elsewhere. */
uint64_t region_refresh(struct heap *heap, struct region *region);
bool is_heap_like(const struct target *target, uint64_t address);

/* Is there a run of chunks from here: sixteen, or up to the region's end? */
bool is_run(const struct heap *heap, const struct region *region, uint64_t chunk);

static inline uint64_t word_at(const uint8_t *bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}

#endif
