#include "cache/supply.h"

#include "config/options.h"
#include "slab/adopt.h"
#include "slab/borrow.h"
#include "slab/pending.h"
#include "slab/slab.h"

/* Other classes' queued slabs drained before a new slab is made: some may be wholly free. */
enum { OTHER_CLASSES_BUDGET = 8 };

RESIDENT static struct slab *make_current(struct owner *owner, struct slab *slab) {
  struct bin *bin = &owner->bins[slab->class];
  struct slab *before = bin->current;
  if (slab->is_listed) slab_unlist(slab, owner);
  bin->current = slab;
  if (before && before != slab && before->free_local) slab_list(before, owner);
  return slab;
}

static bool has_reusable(const struct slab *slab) { return slab && slab_reusable(slab); }

/* The first listed slab, or the second when the first has fresh blocks only. */
RESIDENT static struct slab *choose_partial(const struct bin *bin) {
  struct slab *first = bin->partial;
  return first && !has_reusable(first) && has_reusable(first->next) ? first->next : first;
}

/* Which rung of Route S has blocks that came back; COUNTER_COUNT for none. */
static enum counter route_s(struct owner *owner, unsigned class) {
  struct bin *bin = &owner->bins[class];
  unsigned drained = pending_drain_class(owner, class, options.pending_budget_slabs);
  if (has_reusable(bin->current)) return COUNT_refill_pending;
  if (drained && has_reusable(choose_partial(bin))) return COUNT_refill_pending;
  if (bin->current && os_is_multi_threaded()) { /* else nobody has freed into it */
    count(&owner->counters, COUNT_active_drain_tries);
    if (slab_collect(bin->current, owner)) return COUNT_refill_active_drain;
  }
  return has_reusable(choose_partial(bin)) ? COUNT_refill_partial : COUNTER_COUNT;
}

RESIDENT static void count_reuse(struct owner *owner, enum counter stage) {
  count(&owner->counters, COUNT_must_reuse_hits);
  count(&owner->counters, COUNT_page_reuses);
  count(&owner->counters, stage);
}

RESIDENT struct slab *supply_reuse(struct owner *owner, unsigned class) {
  enum counter stage = route_s(owner, class);
  if (stage == COUNTER_COUNT) return NULL;
  struct bin *bin = &owner->bins[class];
  count_reuse(owner, stage);
  if (stage == COUNT_refill_active_drain) count(&owner->counters, COUNT_active_drain_hits);
  if (has_reusable(bin->current)) return bin->current;
  return make_current(owner, choose_partial(bin));
}

RESIDENT unsigned supply_borrow(struct owner *owner, unsigned class, void **blocks,
                                unsigned wanted) {
  unsigned borrowed = borrow_blocks(owner, class, blocks, wanted);
  if (borrowed) count_reuse(owner, COUNT_refill_borrowed);
  return borrowed;
}

/* A slab of ours with fresh blocks only. */
static struct slab *use_fresh(struct owner *owner, unsigned class) {
  struct bin *bin = &owner->bins[class];
  if (bin->current && bin->current->free_local) {
    count(&owner->counters, COUNT_refill_current);
    return bin->current;
  }
  if (!bin->partial) return NULL;
  count_reuse(owner, COUNT_refill_partial);
  return make_current(owner, bin->partial);
}

/* A slab that was adopted just now. */
static struct slab *use_adopted(struct owner *owner, struct slab *slab, enum counter stage) {
  count_reuse(owner, stage);
  return make_current(owner, slab);
}

/* Slabs of other classes that others have freed wholly are of use to every class. */
static void drain_other_classes(struct owner *owner) {
  unsigned budget = OTHER_CLASSES_BUDGET;
  for (uint64_t ready = load_relaxed(&owner->ready_mask); ready && budget;
       ready &= ready - 1, budget--)
    pending_drain_class(owner, lowest_bit(ready), 1);
}

/* A wholly free slab that the owner keeps for another class, or NULL: long lists are looked at from their begin,
 * where the last freed into are. */
enum { KEPT_PROBES = 64 };
static struct slab *find_kept(const struct owner *owner, unsigned class) {
  for (unsigned other = 0; other < SLAB_CLASS_COUNT; other++) {
    const struct bin *bin = &owner->bins[other];
    if (slots_of_class(other) < slots_of_class(class)) continue;
    if (bin->current && bin->current->free_local == bin->current->capacity) return bin->current;
    struct slab *slab = bin->free_count ? bin->partial : NULL;
    for (unsigned probe = 0; slab && probe < KEPT_PROBES; slab = slab->next, probe++)
      if (slab->free_local == slab->capacity) return slab;
  }
  return NULL;
}

static struct slab *acquire(struct owner *owner, unsigned class, enum supply_reach reach) {
  struct slab *slab = acquire_slab(class, POOL_TOUCHED, &owner->counters);
  struct slab *kept = slab ? NULL : find_kept(owner, class);
  enum pool_reach rest = reach == WITHIN_POOL ? POOL_FRESH : POOL_FRESH | POOL_SYSTEM;
  if (kept && slab_try_release(kept, owner)) rest |= POOL_TOUCHED;
  return slab ? slab : acquire_slab(class, rest, &owner->counters);
}

static struct slab *make_new(struct owner *owner, unsigned class, enum supply_reach reach) {
  drain_other_classes(owner);
  borrow_release_slab(owner, class);
  struct slab *slab = acquire(owner, class, reach);
  if (!slab) return NULL;
  count(&owner->counters, COUNT_new_pages_forced);
  count(&owner->counters, COUNT_refill_new);
  slab_own(slab, owner);
  return make_current(owner, slab);
}

RESIDENT struct slab *supply_take_along(struct owner *owner, struct owner *shared, unsigned class) {
  if (!latch_try(shared)) return NULL;
  struct slab *slab = adopt_from_shared(shared, owner, class);
  latch_give(shared);
  return slab ? use_adopted(owner, slab, COUNT_refill_starter) : NULL;
}

RESIDENT struct slab *supply_touch(struct owner *owner, unsigned class, enum supply_reach reach) {
  struct slab *slab = adopt_from_ended(owner, class);
  if (slab) return use_adopted(owner, slab, COUNT_refill_orphan);
  if (options.route_p && os_is_multi_threaded()) {
    slab = adopt_route_p(owner, class);
    if (slab) return use_adopted(owner, slab, COUNT_refill_route_p);
  }
  slab = use_fresh(owner, class);
  if (slab) return slab;
  return make_new(owner, class, reach);
}

RESIDENT struct slab *supply_pass(struct owner *owner, unsigned class) {
  struct slab *slab = supply_reuse(owner, class);
  return slab ? slab : supply_touch(owner, class, AS_FAR_AS_THE_SYSTEM);
}
