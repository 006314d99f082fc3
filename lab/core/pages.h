/* SPDX-License-Identifier: MIT
 *
 * pages.h: the slabs that all strategies share.
 *
 * One region of addresses is cut into pages of 64 KiB; a page holds blocks of one class.  Pages are
 * made one after the other and never given back, so a strategy's appetite is the number of pages it
 * has made.  The kernel backs them when they are first touched.
 *
 * A block is known by a number, its offset in the region in grains of 2 KiB; 0 is not a block, as
 * page 0 is never made.  Free blocks are linked by number in an array apart from the blocks: lists can
 * be walked without touching the blocks, and a stale link is a wrong number, never a wrong address.
 */
#ifndef LAB_PAGES_H
#define LAB_PAGES_H

#include "counters.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PAGE_SHIFT = 16,
  GRAIN_SHIFT = 11,
  GRAINS_PER_PAGE_SHIFT = PAGE_SHIFT - GRAIN_SHIFT,
  CLASS_COUNT = 7,
  BLOCKS_PER_PAGE_MAX = 16,
  BLOCK_SIZE_MAX = 32 << 10,
  CACHE_LINE = 64,
};

typedef uint32_t block_id; /* 0: none */
typedef uint32_t page_id;  /* 0: none */

/* A chain of blocks that was cut off a list; its last link is 0. */
struct chain {
  block_id first, last;
  uint32_t count;
};

struct page {
  /* Constant once the page is made. */
  alignas(2 * CACHE_LINE) uint8_t class;
  uint8_t block_count;

  /* For strategies whose pages have owners (adoption.c, routes.c).  First what the owner alone
   * touches, then what any thread may. */
  bool is_listed;
  block_id local;
  uint32_t local_count;
  page_id next_partial;
  uint64_t queued_ns;
  alignas(CACHE_LINE) _Atomic uint64_t remote; /* announced frees << 32 | first block */
  _Atomic uint32_t home;                       /* number of the owner */
  _Atomic uint32_t next_queued;
  _Atomic bool is_queued;
};

extern unsigned char *pages_base;
extern struct page *pages;
extern _Atomic uint32_t *block_links;
extern const uint32_t class_sizes[CLASS_COUNT];
extern uint8_t class_of_grains[(BLOCK_SIZE_MAX >> GRAIN_SHIFT) + 1];

/* Reserves the region; `limit` pages can be made. */
void pages_start(uint64_t limit);

/* A new page of the class, its blocks linked from the first to the last; NULL when the limit is
 * reached.  Counted in `counters`. */
struct page *page_make(unsigned class, struct counters *counters, struct chain *blocks);

/* How many pages were made, and blocks in them. */
uint64_t pages_made(void);
uint64_t pages_blocks(void);

static inline unsigned class_of(size_t size) {
  return class_of_grains[(size + (1u << GRAIN_SHIFT) - 1) >> GRAIN_SHIFT];
}

static inline block_id block_id_of(const void *block) {
  return (block_id)((uintptr_t)((const unsigned char *)block - pages_base) >> GRAIN_SHIFT);
}

static inline void *block_of(block_id block) {
  return pages_base + ((uintptr_t)block << GRAIN_SHIFT);
}

static inline struct page *page_of(block_id block) {
  return &pages[block >> GRAINS_PER_PAGE_SHIFT];
}

static inline page_id page_id_of(const struct page *page) { return (page_id)(page - pages); }

/* Relaxed: a link is published by the list that it belongs to. */
static inline block_id next_of(block_id block) {
  return atomic_load_explicit(&block_links[block], memory_order_relaxed);
}

static inline void set_next(block_id block, block_id next) {
  atomic_store_explicit(&block_links[block], next, memory_order_relaxed);
}

/* Cuts up to `wanted` blocks off a private list. */
struct chain chain_cut(block_id *list, uint32_t wanted);
uint32_t chain_length(block_id first);

/* Memory for a strategy's own records, zeroed, never given back. */
void *records_new(size_t bytes);

#endif
