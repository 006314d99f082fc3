/* SPDX-License-Identifier: MIT
 *
 * cas_lists.c: see cas_lists.h.
 */
#include "cas_lists.h"

struct shard {
  alignas(2 * CACHE_LINE) cas_head head;
};

static struct shard shards[CLASS_COUNT][SHARD_COUNT];

static block_id first_of(uint64_t head) { return (block_id)head; }

/* A pop's new head; a push keeps the tag. */
static uint64_t popped(uint64_t head, block_id first) { return ((head >> 32) + 1) << 32 | first; }

void cas_push(cas_head *head, struct chain chain, struct counters *counters) {
  uint64_t seen = atomic_load_explicit(head, memory_order_relaxed);
  for (;;) {
    set_next(chain.last, first_of(seen));
    uint64_t wanted = (seen >> 32) << 32 | chain.first;
    if (atomic_compare_exchange_weak_explicit(head, &seen, wanted, memory_order_release,
                                              memory_order_relaxed)) {
      return;
    }
    counters->cas_retries++;
  }
}

/* While another thread pops, the walk may read links of blocks that are in use or in another list.
 * They are numbers of blocks all the same, and the tag then makes the compare-and-swap fail. */
static struct chain walk(uint64_t head, uint32_t wanted, block_id *rest) {
  struct chain chain = {first_of(head), first_of(head), 1};
  for (*rest = next_of(chain.last); chain.count < wanted && *rest != 0;) {
    chain.last = *rest;
    chain.count++;
    *rest = next_of(chain.last);
  }
  return chain;
}

struct chain cas_pop_walk(cas_head *head, uint32_t wanted, struct counters *counters) {
  uint64_t seen = atomic_load_explicit(head, memory_order_acquire);
  while (first_of(seen) != 0) {
    block_id rest;
    struct chain chain = walk(seen, wanted, &rest);
    if (atomic_compare_exchange_weak_explicit(head, &seen, popped(seen, rest), memory_order_acquire,
                                              memory_order_acquire)) {
      set_next(chain.last, 0);
      return chain;
    }
    counters->cas_retries++;
  }
  return (struct chain){0, 0, 0};
}

block_id cas_pop_one(cas_head *head, struct counters *counters) {
  uint64_t seen = atomic_load_explicit(head, memory_order_acquire);
  while (first_of(seen) != 0) {
    block_id rest = next_of(first_of(seen));
    if (atomic_compare_exchange_weak_explicit(head, &seen, popped(seen, rest), memory_order_acquire,
                                              memory_order_acquire)) {
      return first_of(seen);
    }
    counters->cas_retries++;
  }
  return 0;
}

void cas_lists_push(block_id block, struct counters *counters) {
  struct shard *shard = &shards[page_of(block)->class][shard_of(block)];
  cas_push(&shard->head, (struct chain){block, block, 1}, counters);
}

struct chain cas_lists_fetch(unsigned class, unsigned start, pop_batch_function *pop_batch,
                             struct counters *counters) {
  for (unsigned i = 0; i < SHARD_COUNT; i++) {
    struct chain chain = pop_batch(&shards[class][(start + i) % SHARD_COUNT].head, counters);
    if (chain.count != 0) {
      counters->reuses++;
      return chain;
    }
  }
  struct chain chain = {0, 0, 0};
  page_make(class, counters, &chain);
  return chain;
}

uint64_t cas_lists_count(void) {
  uint64_t count = 0;
  for (unsigned i = 0; i < CLASS_COUNT * SHARD_COUNT; i++) {
    count += chain_length(first_of(shards[i / SHARD_COUNT][i % SHARD_COUNT].head));
  }
  return count;
}
