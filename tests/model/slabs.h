/* slabs.h: owners and slabs for scenarios, and the laws that hold when all is quiet. */
#ifndef SLABS_H
#define SLABS_H

#include "cache/supply.h"
#include "config/options.h"
#include "model.h"
#include "os.h"
#include "slab/adopt.h"
#include "slab/borrow.h"
#include "slab/pending.h"
#include "slab/record.h"
#include "slab/slab.h"

/* Slabs of 8 blocks in four slots: few blocks, one bitmap word. */
enum {
  CLASS_32K = FITTED_CLASS_FIRST - FILLING_CLASS_COUNT - 1,
  CLASS_28K = CLASS_32K - 1,
  SLAB_BLOCKS = 8
};

static struct owner one = {.number = 1, .tag = 1u << MAP_TAG_SHIFT};
static struct owner two = {.number = 2, .tag = 2u << MAP_TAG_SHIFT};
/* Counters of threads that only free. */
static struct counters strays[MODEL_THREADS_MAX];

static inline void set_up_pool(void) {
  options.route_p = false;
  MODEL_REQUIRE(window_init(UINT64_C(64) << 20));
}

static inline void set_up_owners(void) {
  set_up_pool();
  owner_register(&two);
  owner_register(&one);
  /* No thread looks for garbage here: all would meet at that word as well. */
  store_relaxed(&purge_state, PURGE_ARMED);
}

static inline struct slab *own_new_slab(struct owner *owner, unsigned class) {
  struct slab *slab = acquire_slab(class, POOL_ALL, &owner->counters);
  MODEL_REQUIRE(slab);
  slab_own(slab, owner);
  return slab;
}

/* A slab whose blocks are all taken. */
static inline struct slab *own_full_slab(struct owner *owner, unsigned class) {
  void *blocks[SLAB_BLOCKS];
  struct slab *slab = own_new_slab(owner, class);
  MODEL_REQUIRE(slab->capacity == SLAB_BLOCKS);
  MODEL_REQUIRE(slab_take(slab, owner, blocks, SLAB_BLOCKS) == SLAB_BLOCKS);
  return slab;
}

/* The other way a thread comes by blocks: others free them remotely. */
static inline void free_remotely(struct slab *slab, uint64_t bits) {
  slab_free_remote(slab, 0, bits, &strays[model_self()]);
}

static inline void drain_owner(struct owner *owner) {
  latch_take(owner);
  pending_drain_class(owner, CLASS_32K, UINT64_MAX);
  latch_give(owner);
}

/* As the end of its thread. */
static inline void park_one(void) {
  latch_take(&one);
  owner_park(&one);
  latch_give(&one);
}

static inline bool is_in_queue(const struct slab *slab, const struct slab *queued) {
  bool is_found = false;
  for (unsigned length = 0; queued; queued = load_relaxed(&queued->pending_next)) {
    MODEL_REQUIRE(++length < 100); /* else it is a ring */
    is_found |= queued == slab;
  }
  return is_found;
}

static inline bool is_queued_with(const struct slab *slab, struct owner *owner) {
  return is_in_queue(slab, load_relaxed(&owner->pending[slab->class])) ||
         is_in_queue(slab, owner->bins[slab->class].taken);
}

static inline bool is_listed_with(const struct slab *slab, const struct owner *owner) {
  for (const struct slab *listed = owner->bins[slab->class].partial; listed; listed = listed->next)
    if (listed == slab) return true;
  return false;
}

/* The laws of superslab.h and owner.h for a slab with an owner; `live` blocks are not free. */
static inline void require_owned(const struct slab *slab, struct owner *owner, uint64_t live) {
  uint64_t local = slab->local[0], remote = load_relaxed(&slab->remote[0]);
  MODEL_REQUIRE(load_relaxed(&slab->owner) == owner);
  MODEL_REQUIRE(load_relaxed(&slab->state) == SLOT_ACTIVE);
  MODEL_REQUIRE((local & remote) == 0 && (local & live) == 0 && (remote & live) == 0);
  MODEL_REQUIRE((local | remote | live) == low_bits(slab->capacity));
  MODEL_REQUIRE(slab->free_local == count_bits(local));
  MODEL_REQUIRE(slab->is_listed == is_listed_with(slab, owner));
  bool is_current = owner->bins[slab->class].current == slab;
  MODEL_REQUIRE(!local || is_current || slab->is_listed);
  /* Blocks that others freed are on their way to the owner, which can see that. */
  bool is_queued = false;
  for (struct owner *each = owners_first(); each; each = each->next_of_all)
    is_queued |= is_queued_with(slab, each);
  MODEL_REQUIRE(load_relaxed(&slab->queued) == is_queued);
  MODEL_REQUIRE(!remote || is_queued || is_current);
}

/* Queued slabs can be seen: by the owner and who looks at its ready mask. */
static inline void require_ready(const struct owner *owner) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    if (load_relaxed(&owner->pending[class]) || owner->bins[class].taken)
      MODEL_REQUIRE(load_relaxed(&owner->ready_mask) >> class & 1);
  MODEL_REQUIRE(load_relaxed(&owner->latch) == LATCH_FREE);
}

static inline void require_in_pool(const struct slab *slab) {
  MODEL_REQUIRE(load_relaxed(&slab->owner) == NULL && load_relaxed(&slab->queued) == 0);
  MODEL_REQUIRE(load_relaxed(&slab->state) != SLOT_ACTIVE && !slab->is_listed);
  MODEL_REQUIRE(!is_queued_with(slab, &one) && !is_queued_with(slab, &two));
  MODEL_REQUIRE(load_relaxed(&slab->remote[0]) == 0);
}

static const struct model_mutant latch_mutants[] = {
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"the latch without release", {{"latch_give", "store", "latch", MODEL_WEAKEN, 0}}}};

#endif
