#include "cache/supply.h"

#include "cache/flush.h"
#include "cache/starter.h"
#include "config/options.h"
#include "slab/adopt.h"
#include "slab/borrow.h"
#include "slab/pending.h"
#include "slab/slab.h"

static struct bin *bin_of(const struct supply *supply) {
  return &supply->owner->bins[supply->class];
}

static bool has_reusable(const struct slab *slab) { return slab && slab_reusable(slab); }

/* ---- the owner's slabs ----------------------------------------------------------------------- */

/* Hardened mode draws blocks at random, and prefers no reused blocks to fresh ones. */
INLINE struct slab *find_current(struct supply *supply) {
  struct slab *slab = bin_of(supply)->current;
  if (!slab) return NULL;
  unsigned blocks =
      supply->users & (FOR_MAGAZINE | FOR_STARTER) ? slab_reusable(slab) : slab->free_local;
  return blocks ? slab : NULL;
}

/* The first listed slab, or the second when the first has fresh blocks only. */
INLINE struct slab *find_partial(struct supply *supply) {
  struct slab *first = bin_of(supply)->partial;
  if (!first || slab_reusable(first)) return first;
  return has_reusable(first->next) ? first->next : NULL;
}

/* Slabs taken from the owner's pending queue in one visit: a refill needs one, and the others can
 * wait. */
enum { PENDING_BUDGET_SLABS = 4 };

INLINE struct slab *find_pending(struct supply *supply) {
  if (!pending_may_have(supply->owner, supply->class)) return NULL;
  unsigned useful = pending_drain_class(supply->owner, supply->class, PENDING_BUDGET_SLABS);
  struct slab *current = bin_of(supply)->current;
  if (has_reusable(current)) return current;
  return useful ? find_partial(supply) : NULL;
}

/* Skipped in a process with one thread: no remote frees. */
INLINE struct slab *find_active_drain(struct supply *supply) {
  struct slab *current = bin_of(supply)->current;
  if (!current || !os_is_multi_threaded()) return NULL;
  count(&supply->owner->counters, COUNT_active_drain_tries);
  if (!slab_collect(current, supply->owner)) return NULL;
  count(&supply->owner->counters, COUNT_active_drain_hits);
  return current;
}

INLINE struct slab *find_fresh(struct supply *supply) {
  struct slab *current = bin_of(supply)->current;
  return current && current->free_local ? current : NULL;
}

INLINE struct slab *find_fresh_listed(struct supply *supply) { return bin_of(supply)->partial; }

/* ---- others' --------------------------------------------------------------------------------- */

/* Large blocks by a few: those that the owner needs back it would have to borrow itself. */
INLINE struct slab *find_borrowed(struct supply *supply) {
  enum { LEAST = 8, MOST = 64, MOST_BYTES = 32 << 10 };
  if (owner_after(supply->owner) == supply->owner) return NULL; /* there is no other */
  size_t most = MOST_BYTES / class_bytes(supply->class);
  unsigned wanted = most < LEAST ? LEAST : most < MOST ? (unsigned)most : MOST;
  if (wanted > supply->wanted) wanted = supply->wanted;
  supply->taken = borrow_blocks(supply->owner, supply->class, supply->blocks, wanted);
  return NULL;
}

INLINE struct slab *find_starter(struct supply *supply) {
  if (load_relaxed(&bin_of(supply)->slab_count) || !supply->heap) return NULL;
  return starter_take_along(supply->heap, supply->class);
}

INLINE struct slab *find_ended(struct supply *supply) {
  return adopt_from_ended(supply->owner, supply->class);
}

INLINE struct slab *find_route_p(struct supply *supply) {
  bool may_be = options.route_p && os_is_multi_threaded();
  return may_be ? adopt_route_p(supply->owner, supply->class) : NULL;
}

/* ---- the pool -------------------------------------------------------------------------------- */

/* A class with many slabs grows on: one call for a slab's pages, not a fault each. At most one part
 * in as many is resident and unused. */
enum { SLABS_TO_POPULATE = 32, POPULATED_MAX_BYTES = 2048 };

RESIDENT static struct slab *acquire(struct supply *supply, enum pool_reach reach) {
  bool grows = load_relaxed(&bin_of(supply)->slab_count) >= SLABS_TO_POPULATE;
  if (grows && class_bytes(supply->class) <= POPULATED_MAX_BYTES) reach |= POOL_POPULATED;
  struct slab *slab = acquire_slab(supply->class, reach, &supply->owner->counters);
  if (slab) slab_own(slab, supply->owner);
  return slab;
}

INLINE struct slab *find_pool(struct supply *supply) { return acquire(supply, POOL_WITHIN); }
INLINE struct slab *find_system(struct supply *supply) { return acquire(supply, POOL_SYSTEM); }

/* Frees memory of the heap's own caches before the system is asked.
 * NOLINTNEXTLINE(misc-no-recursion): once, is_relieved */
RESIDENT static struct slab *find_relieved(struct supply *supply) {
  struct heap *heap = supply->heap;
  if (!heap || supply->is_relieved || load_relaxed(&heap->owner.bytes_out) <= 0) return NULL;
  supply->is_relieved = true;
  latch_give(supply->owner);
  flush_resting(heap);
  owner_begin_work(supply->owner);
  return supply_climb(supply);
}

/* ---- the climb ------------------------------------------------------------------------------- */

RESIDENT static struct slab *make_current(struct supply *supply, struct slab *slab) {
  struct bin *bin = bin_of(supply);
  struct slab *before = bin->current;
  if (slab == before) return slab;
  if (slab->is_listed) slab_unlist(slab, supply->owner);
  show(bin, current, slab);
  if (before && before->free_local) slab_list(before, supply->owner);
  return slab;
}

INLINE struct slab *note_hit(struct supply *supply, struct slab *slab, enum counter counter,
                             enum supply_kind kind) {
  struct counters *counters = &supply->owner->counters;
  if (kind == SUPPLY_AGAIN) return slab;
  count(counters, counter);
  if (kind == SUPPLY_REUSE || kind == SUPPLY_LOAN) {
    count(counters, COUNT_must_reuse_hits);
    count(counters, COUNT_page_reuses);
  }
  if (kind == SUPPLY_NEW) count(counters, COUNT_new_pages_forced);
  return kind == SUPPLY_OWN || kind == SUPPLY_LOAN ? slab : make_current(supply, slab);
}

/* NOLINTNEXTLINE(misc-no-recursion): see find_relieved */
RESIDENT struct slab *supply_climb(struct supply *supply) {
  ASSERT(latch_is_held(supply->owner));
  const unsigned before = supply->taken;
  struct slab *slab;
#define RUNG(find, counter, kind, who, touches, what)          \
  if ((touches || kind == SUPPLY_LOAN) && before) return NULL; \
  if (who == FOR_ALL || supply->users & (who)) {               \
    slab = find(supply);                                       \
    if (slab || (kind == SUPPLY_LOAN && supply->taken)) {      \
      supply->is_alone = touches;                              \
      return note_hit(supply, slab, counter, kind);            \
    }                                                          \
  }
  SUPPLY_LADDER
#undef RUNG
  return NULL;
}

RESIDENT unsigned supply_fill(struct supply *supply) {
  do {
    struct slab *slab = supply_climb(supply);
    if (!slab) break;
    unsigned wanted = slab_batch(slab, supply->owner, supply->wanted - supply->taken);
    supply->taken += slab_take(slab, supply->owner, supply->blocks + supply->taken, wanted);
  } while (supply->taken * 2 < supply->wanted && !supply->is_alone);
  return supply->taken;
}
