#include "slab/owner.h"

ATOMIC(uint64_t) orphan_mask;

ATOMIC(struct owner *) all_owners;

void owner_register(struct owner *owner) {
  owner->next_of_all = load_acquire(&all_owners);
  /* release: the owner's fields before it can be found; pairs with owners_first. */
  while (!cas_weak_acq_rel(&all_owners, &owner->next_of_all, owner)) {
  }
}
