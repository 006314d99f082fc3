/* SPDX-License-Identifier: MIT
 *
 * remote.h: a page's remote list, one word: how many frees were announced, and the first free block.
 * Many threads push, one takes all by an exchange; single blocks are never popped, so there is no ABA.
 */
#ifndef LAB_REMOTE_H
#define LAB_REMOTE_H

#include "pages.h"

static inline uint32_t remote_announced(uint64_t remote) { return (uint32_t)(remote >> 32); }

static inline block_id remote_first(uint64_t remote) { return (block_id)remote; }

/* Pushes a block and returns how many frees were announced before.  `announced`: 1 counts this one,
 * 0 does not. */
static inline uint32_t remote_push(struct page *page, block_id block, uint64_t announced,
                                   struct counters *counters) {
  uint64_t seen = atomic_load_explicit(&page->remote, memory_order_relaxed);
  for (;;) {
    set_next(block, remote_first(seen));
    uint64_t wanted = (remote_announced(seen) + announced) << 32 | block;
    if (atomic_compare_exchange_weak_explicit(&page->remote, &seen, wanted, memory_order_acq_rel,
                                              memory_order_relaxed)) {
      return remote_announced(seen);
    }
    counters->cas_retries++;
  }
}

/* All blocks; the count starts anew. */
static inline block_id remote_take_all(struct page *page) {
  return remote_first(atomic_exchange_explicit(&page->remote, 0, memory_order_acq_rel));
}

#endif
