#include "slab/owner.h"

ATOMIC(uint64_t) orphan_mask;

ATOMIC(struct owner *) all_owners;

NOINLINE void latch_wait(struct owner *owner) {
  if (load_relaxed(&owner->latch) == LATCH_FORKING) return; /* we hold it, in a fork handler */
  word_wait(&owner->latch);
  store_relaxed(&owner->latch, LATCH_OWN); /* ours already, and nobody else waits */
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

RESIDENT struct owner *owner_of_tag(uint32_t tag) {
  struct owner *owner = owners_first();
  while (owner && owner->tag != tag) owner = owner->next_of_all;
  return owner;
}
