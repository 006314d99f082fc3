#include "slab/owner.h"

ATOMIC(uint64_t) orphan_mask;

ATOMIC(struct owner *) all_owners;

/* Slabs of a list that are checked: enough to find a fault of the last change. */
enum { LAW_PROBES = 3 };

/* Exactly the wholly free slabs are last. */
static bool is_end_valid(const struct bin *bin) {
  if (!bin->partial) return !bin->free_count;
  const struct slab *slab = bin->partial->previous;
  if (slab->next) return false;
  for (uint32_t probe = 0; probe < LAW_PROBES && probe < bin->partial_count; probe++) {
    if ((slab->free_local == slab->capacity) != (probe < bin->free_count)) return false;
    slab = slab->previous;
  }
  return true;
}

static bool bin_is_valid(const struct bin *bin) {
  const struct slab *slab = bin->partial, *before = slab ? slab->previous : NULL;
  uint32_t listed = 0, wholly_free = 0;
  for (; slab && listed < LAW_PROBES; before = slab, slab = slab->next, listed++) {
    if (slab == bin->current || slab->previous != before) return false;
    if (!slab->is_listed || !slab->free_local || !slab_is_valid(slab)) return false;
    wholly_free += slab->free_local == slab->capacity;
  }
  bool are_sums_right = slab ? listed < bin->partial_count && wholly_free <= bin->free_count
                             : listed == bin->partial_count && wholly_free == bin->free_count;
  return are_sums_right && is_end_valid(bin) && (!bin->current || !bin->current->is_listed);
}

static bool are_owned_valid(const struct owner *owner) {
  const struct slab *slab = owner->owned, *before = NULL;
  for (uint32_t probe = 0; slab && probe < LAW_PROBES;
       before = slab, slab = slab->next_owned, probe++)
    if (slab->previous_owned != before || load_relaxed(&slab->owner) != owner) return false;
  return true;
}

static bool are_lists_valid(const struct owner *owner) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    if (!bin_is_valid(&owner->bins[class])) return false;
  }
  return are_owned_valid(owner);
}

bool owner_is_valid(const struct owner *owner) {
  /* relaxed: changed under the latch. */
  return are_lists_valid(owner) || load_relaxed(&owner->state) == OWNER_LOST;
}

void owner_link_slab(struct owner *owner, struct slab *slab) {
  slab->previous_owned = NULL;
  slab->next_owned = owner->owned;
  if (owner->owned) owner->owned->previous_owned = slab;
  owner->owned = slab;
}

void owner_unlink_slab(struct owner *owner, struct slab *slab) {
  struct slab *next = slab->next_owned, *previous = slab->previous_owned;
  *(previous ? &previous->next_owned : &owner->owned) = next;
  if (next) next->previous_owned = previous;
}

NOINLINE void latch_wait(struct owner *owner) {
  uint32_t holder = load_relaxed(&owner->latch);
  if (holder == LATCH_FORKING) return; /* held by this thread, in a fork handler */
  if (UNLIKELY(holder == LATCH_OWN)) report_endless_wait();
  word_wait(&owner->latch);
  store_relaxed(&owner->latch, LATCH_OWN); /* held already, and no other thread waits */
}

RESIDENT void owner_register(struct owner *owner) {
  owner->next_of_all = load_acquire(&all_owners);
  /* release: the owner's fields before it can be found; pairs with owners_first. */
  while (!cas_weak_acq_rel(&all_owners, &owner->next_of_all, owner)) {
  }
}

uint32_t owner_thread_id(const struct owner *owner) {
  if (!owner || load_relaxed(&owner->state) == OWNER_PARKED) return 0;
  uint32_t thread_id = load_relaxed(&owner->thread_id);
  return thread_id ? thread_id : os_process_id(); /* the first thread has the process's number */
}

struct owner *owner_of_tag(uint32_t tag) {
  struct owner *owner = owners_first();
  while (owner && (owner->tag ^ tag) > MAP_CLASS_MASK) owner = owner->next_of_all;
  return owner;
}
