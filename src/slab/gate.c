#include "slab/gate.h"

#include "config/options.h"
#include "pool/slab_pool.h"
#include "slab/adopt.h"
#include "slab/pending.h"
#include "slab/slab.h"

/* Other classes' queued slabs drained before a new slab is made: some may be wholly free. */
enum { OTHER_CLASSES_BUDGET = 8 };

static struct slab *make_current(struct owner *owner, struct slab *slab) {
  if (slab->is_listed) slab_unlist(slab, owner);
  owner->bins[slab->class].current = slab;
  return slab;
}

/* Which rung of Route S served; COUNTER_COUNT for none. */
static enum counter route_s(struct owner *owner, unsigned class) {
  struct bin *bin = &owner->bins[class];
  unsigned drained = pending_drain_class(owner, class, options.pending_budget_slabs);
  if (bin->current && bin->current->free_local) return COUNT_refill_pending;
  if (drained && bin->partial) return COUNT_refill_pending;
  if (bin->current) {
    count(&owner->counters, COUNT_active_drain_tries);
    if (slab_collect(bin->current, owner)) return COUNT_refill_active_drain;
  }
  return bin->partial ? COUNT_refill_partial : COUNTER_COUNT;
}

static struct slab *reuse(struct owner *owner, unsigned class) {
  enum counter stage = route_s(owner, class);
  if (stage == COUNTER_COUNT) return NULL;
  struct counters *counters = &owner->counters;
  struct bin *bin = &owner->bins[class];
  count(counters, COUNT_must_reuse_hits);
  count(counters, COUNT_page_reuses);
  count(counters, stage);
  if (stage == COUNT_refill_active_drain) count(counters, COUNT_active_drain_hits);
  if (bin->current && bin->current->free_local) return bin->current;
  return make_current(owner, bin->partial);
}

/* A slab that was adopted just now. */
static struct slab *use_adopted(struct owner *owner, struct slab *slab, enum counter stage) {
  count(&owner->counters, COUNT_must_reuse_hits);
  count(&owner->counters, COUNT_page_reuses);
  count(&owner->counters, stage);
  return make_current(owner, slab);
}

/* Slabs of other classes that others have freed wholly are of use to every class. */
static void drain_other_classes(struct owner *owner) {
  unsigned budget = OTHER_CLASSES_BUDGET;
  for (uint64_t ready = load_relaxed(&owner->ready_mask); ready && budget;
       ready &= ready - 1, budget--)
    pending_drain_class(owner, lowest_bit(ready), 1);
}

static struct slab *make_new(struct owner *owner, unsigned class) {
  drain_other_classes(owner);
  struct slab *slab = acquire_slab(class, &owner->counters);
  if (!slab) return NULL;
  count(&owner->counters, COUNT_new_pages_forced);
  count(&owner->counters, COUNT_refill_new);
  slab_own(slab, owner);
  owner->bins[class].current = slab;
  return slab;
}

struct slab *gate_pass(struct owner *owner, unsigned class) {
  struct slab *slab = reuse(owner, class);
  if (slab) return slab;
  slab = adopt_from_ended(owner, class);
  if (slab) return use_adopted(owner, slab, COUNT_refill_orphan);
  if (options.route_p && os_is_multi_threaded()) {
    slab = adopt_route_p(owner, class);
    if (slab) return use_adopted(owner, slab, COUNT_refill_route_p);
  }
  return make_new(owner, class);
}
