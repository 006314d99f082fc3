/* SPDX-License-Identifier: MIT
 *
 * routes.h: pages with owners, a pending queue per owner and class, and the supply ladder.
 *
 *   malloc   the active page's local blocks; else the supply ladder:
 *            1  own pending queue, a budget of pages a visit; the first serves, the others become partial
 *            2  remote frees of the active page
 *            3  the partial list
 *            4  Route P: a page of another owner, if all conditions hold
 *            5  a new page
 *   free     own page: its local list, no atomic operation; any other: its remote list; on the 0 -> 1
 *            edge of the remote count the page joins its owner's pending queue
 *
 * In Route S only its owner touches a page's local list.  With Route P an adopter may, under the
 * owner's latch; so the owner takes it, too, for the supply ladder and for frees into pages other than the active
 * one, which is never adopted.  The latch is a word that its owner finds free but for the moment of an
 * adoption; the product takes it once per batch, the laboratory, which has no magazines, at each free.
 */
#ifndef LAB_ROUTES_H
#define LAB_ROUTES_H

#include "pages.h"
#include "recycler.h"

/* All zero: Route S. */
struct route_policy {
  bool adopts;
  uint64_t refusal_ns;   /* the owner's right of first refusal after the 0 -> 1 edge */
  uint64_t idle_ns;      /* without a slow path: the owner idles */
  uint32_t above_pages;  /* more queued pages than this */
  uint32_t least_blocks; /* remote frees on the page, or all of its blocks */
};

struct owner {
  alignas(2 * CACHE_LINE) struct recycled recycled;
  struct page *active[CLASS_COUNT];
  page_id partial[CLASS_COUNT];
  page_id taken[CLASS_COUNT]; /* off the pending queue, not drained yet */
  struct owner *next_of_all;
  bool is_registered;

  /* Read by threads that check whether this owner idles; they write latch and seen_*, too. */
  alignas(2 * CACHE_LINE) _Atomic uint64_t slow_paths;
  _Atomic uint32_t partial_count[CLASS_COUNT];
  _Atomic uint64_t seen_slow_paths, seen_ns;
  _Atomic bool latch;

  alignas(2 * CACHE_LINE) _Atomic uint32_t ready; /* bit per class: pages may be pending */
  _Atomic uint32_t pending[CLASS_COUNT];          /* first page; popped whole, by exchange */
  _Atomic uint32_t pending_count[CLASS_COUNT];    /* about */
};

void *owner_begin(struct recycler *owners, struct counters *counters);
block_id owner_take(struct owner *owner, unsigned class, const struct route_policy *policy);
void owner_give(struct owner *owner, block_id block, const struct route_policy *policy);
uint64_t owners_count_free(void);

#endif
