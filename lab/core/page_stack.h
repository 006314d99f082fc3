/* SPDX-License-Identifier: MIT
 *
 * page_stack.h: a lock-free stack of pages, linked through next_queued, for many producers and many
 * consumers; a tag that each pop changes keeps ABA out.
 */
#ifndef LAB_PAGE_STACK_H
#define LAB_PAGE_STACK_H

#include "pages.h"

struct page_stack {
  alignas(2 * CACHE_LINE) _Atomic uint64_t head; /* tag << 32 | page */
};

static inline void page_stack_push(struct page_stack *stack, struct page *page,
                                   struct counters *counters) {
  uint64_t seen = atomic_load_explicit(&stack->head, memory_order_relaxed);
  for (;;) {
    atomic_store_explicit(&page->next_queued, (page_id)seen, memory_order_relaxed);
    uint64_t wanted = (seen >> 32) << 32 | page_id_of(page);
    if (atomic_compare_exchange_weak_explicit(&stack->head, &seen, wanted, memory_order_release,
                                              memory_order_relaxed)) {
      return;
    }
    counters->cas_retries++;
  }
}

static inline struct page *page_stack_pop(struct page_stack *stack, struct counters *counters) {
  uint64_t seen = atomic_load_explicit(&stack->head, memory_order_acquire);
  while ((page_id)seen != 0) {
    struct page *page = &pages[(page_id)seen];
    page_id next = atomic_load_explicit(&page->next_queued, memory_order_relaxed);
    uint64_t wanted = ((seen >> 32) + 1) << 32 | next;
    if (atomic_compare_exchange_weak_explicit(&stack->head, &seen, wanted, memory_order_acquire,
                                              memory_order_acquire)) {
      return page;
    }
    counters->cas_retries++;
  }
  return NULL;
}

#endif
