/* SPDX-License-Identifier: MIT
 *
 * adoption.c: see adoption.h.
 */
#include "adoption.h"

#include "page_stack.h"
#include "remote.h"

static struct page_stack pending[CLASS_COUNT];

static bool is_home(const struct page *page, const struct adopter *adopter) {
  return atomic_load_explicit(&page->home, memory_order_relaxed) == adopter->recycled.number;
}

/* A page is in the queue once at most. */
static void enqueue(struct page *page, struct counters *counters) {
  if (!atomic_exchange_explicit(&page->is_queued, true, memory_order_acq_rel)) {
    page_stack_push(&pending[page->class], page, counters);
    counters->queued++;
  }
}

/* The active page has no more blocks in our hands. */
static void leave(struct page *page, const struct adopter *adopter,
                  const struct adoption_policy *policy) {
  struct counters *counters = adopter->recycled.counters;
  if (!is_home(page, adopter)) {
    counters->lost_pages++;
  }
  if (policy->queues_left_pages &&
      remote_first(atomic_load_explicit(&page->remote, memory_order_acquire)) != 0) {
    enqueue(page, counters);
  }
}

/* The next pending page of any owner; the adopter owns it from now on. */
static struct page *adopt(unsigned class, struct adopter *adopter) {
  struct counters *counters = adopter->recycled.counters;
  struct page *page;
  while ((page = page_stack_pop(&pending[class], counters)) != NULL) {
    counters->drained++;
    if (!is_home(page, adopter)) {
      counters->adopted++;
      atomic_store_explicit(&page->home, adopter->recycled.number, memory_order_relaxed);
    }
    /* Before the blocks are taken, so that a later push can queue the page again. */
    atomic_exchange_explicit(&page->is_queued, false, memory_order_acq_rel);
    adopter->blocks[class] = remote_take_all(page);
    if (adopter->blocks[class] != 0) {
      counters->reuses++;
      return page;
    }
  }
  return NULL;
}

static bool find_page(struct adopter *adopter, unsigned class,
                      const struct adoption_policy *policy) {
  if (adopter->active[class] != NULL) {
    leave(adopter->active[class], adopter, policy);
  }
  struct page *page = adopt(class, adopter);
  if (page == NULL) {
    struct chain blocks = {0, 0, 0};
    page = page_make(class, adopter->recycled.counters, &blocks);
    if (page != NULL) {
      atomic_store_explicit(&page->home, adopter->recycled.number, memory_order_relaxed);
      adopter->blocks[class] = blocks.first;
    }
  }
  adopter->active[class] = page;
  return page != NULL;
}

block_id adoption_take(struct adopter *adopter, unsigned class,
                       const struct adoption_policy *policy) {
  if (adopter->blocks[class] == 0 && !find_page(adopter, class, policy)) {
    return 0;
  }
  block_id block = adopter->blocks[class];
  adopter->blocks[class] = next_of(block);
  return block;
}

void adoption_give(struct adopter *adopter, block_id block, const struct adoption_policy *policy) {
  struct counters *counters = adopter->recycled.counters;
  struct page *page = page_of(block);
  if (page == adopter->active[page->class]) {
    set_next(block, adopter->blocks[page->class]);
    adopter->blocks[page->class] = block;
    return;
  }
  bool is_remote = !is_home(page, adopter);
  bool is_announced = is_remote || policy->announces_own;
  uint32_t before = remote_push(page, block, is_announced, counters);
  counters->remote_frees += is_remote;
  if (is_announced && before + 1 == policy->threshold) {
    enqueue(page, counters);
  }
}

uint64_t adoption_count(const struct recycler *adopters) {
  uint64_t count = 0;
  for (const struct recycled *state = adopters->first; state != NULL; state = state->next) {
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
      count += chain_length(((const struct adopter *)state)->blocks[class]);
    }
  }
  for (uint64_t number = 1; number <= pages_made(); number++) {
    count += chain_length(remote_first(atomic_load(&pages[number].remote)));
  }
  return count;
}
