/* SPDX-License-Identifier: MIT
 *
 * adoption.h: pages with owners and one pending queue per class from which ANY thread takes, as the
 * notes tried before Route S.
 *
 *   malloc   the active page's blocks; else a pending page, adopted and drained at once; else a new page
 *   free     a block of the active page goes back to it; any other is pushed on its page's remote list
 *   queue    a page whose announced remote frees reach the policy's threshold becomes pending
 *
 * An owner's own frees to a page that is not active are not announced unless the policy says so: the
 * page waits for a remote free.  There is no partial list, and the active page's remote frees are not
 * collected: the supply ladder of Route S added both.
 */
#ifndef LAB_ADOPTION_H
#define LAB_ADOPTION_H

#include "pages.h"
#include "recycler.h"

struct adoption_policy {
  uint32_t threshold;     /* announced frees that make a page pending */
  bool queues_left_pages; /* a page left with free blocks becomes pending again */
  bool announces_own;     /* the owner's frees count as remote ones do */
};

struct adopter {
  alignas(2 * CACHE_LINE) struct recycled recycled;
  struct page *active[CLASS_COUNT];
  block_id blocks[CLASS_COUNT]; /* taken off the active page: no other thread sees them */
};

block_id adoption_take(struct adopter *adopter, unsigned class,
                       const struct adoption_policy *policy);
void adoption_give(struct adopter *adopter, block_id block, const struct adoption_policy *policy);

/* All free blocks, those of lost pages too. */
uint64_t adoption_count(const struct recycler *adopters);

/* The parts of a strategy of this family other than its policy. */
#define ADOPTION_STRATEGY(symbol, name_, sentence_)                        \
  static struct recycler adopters = RECYCLER(struct adopter);              \
                                                                           \
  static void *thread_begin(struct counters *counters) {                   \
    return recycler_take(&adopters, counters);                             \
  }                                                                        \
                                                                           \
  static void thread_end(void *state) { recycler_give(&adopters, state); } \
                                                                           \
  static void *take(void *state, size_t size) {                            \
    block_id block = adoption_take(state, class_of(size), &policy);        \
    return block == 0 ? NULL : block_of(block);                            \
  }                                                                        \
                                                                           \
  static void give(void *state, void *block) {                             \
    adoption_give(state, block_id_of(block), &policy);                     \
  }                                                                        \
                                                                           \
  static uint64_t count_free(void) { return adoption_count(&adopters); }   \
                                                                           \
  const struct strategy symbol = {                                         \
      .name = name_,                                                       \
      .sentence = sentence_,                                               \
      .thread_begin = thread_begin,                                        \
      .thread_end = thread_end,                                            \
      .take = take,                                                        \
      .give = give,                                                        \
      .count_free = count_free,                                            \
  }

#endif
