/* src/slab/pending: slabs with remote frees on their way to the owner. */
#include "owners.h"

static bool is_ready(const struct owner *owner) {
  return load_relaxed(&owner->ready_mask) >> CLASS_64 & 1;
}

CHILD_TEST(the_edge) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  for (unsigned round = 1; round <= 3; round++) {
    slab_free_remote(slab, round, 1, &other.counters);
    slab_free_remote(slab, round, 2, &other.counters);
    REQUIRE(counted(&other, COUNT_pending_enqueued) == round && queued_in(&mine, CLASS_64) == 1);
    REQUIRE(is_ready(&mine) && load_relaxed(&slab->queued) == 1);
    REQUIRE(pending_next(&mine, CLASS_64) == slab && load_relaxed(&slab->queued) == 1);
    REQUIRE(pending_drain(slab, &mine) && load_relaxed(&slab->queued) == 0);
    REQUIRE(!pending_next(&mine, CLASS_64) && !is_ready(&mine) && queued_in(&mine, CLASS_64) == 0);
    REQUIRE(slab->free_local == 2 * round && counted(&mine, COUNT_pending_drained) == round);
  }
}

CHILD_TEST(budget) {
  for (unsigned index = 0; index < 6; index++) free_remotely(full_slab(&mine, CLASS_64), 3);
  REQUIRE(queued_in(&mine, CLASS_64) == 6 && pending_drain_class(&mine, CLASS_64, 4) == 4);
  REQUIRE(queued_in(&mine, CLASS_64) == 2 && is_ready(&mine));
  REQUIRE(pending_drain_class(&mine, CLASS_64, 4) == 2 && queued_in(&mine, CLASS_64) == 0);
  REQUIRE(pending_drain_class(&mine, CLASS_64, 4) == 0);
  REQUIRE(mine.bins[CLASS_64].partial_count == 6);
}

CHILD_TEST(put_back) {
  free_remotely(full_slab(&mine, CLASS_64), 3);
  free_remotely(full_slab(&mine, CLASS_64), 3);
  struct slab *slab = pending_next(&mine, CLASS_64);
  store_relaxed(&slab->pending_next, NULL);
  pending_put_back_all(slab, &mine);
  REQUIRE(queued_in(&mine, CLASS_64) == 2 && is_ready(&mine) && load_relaxed(&slab->queued) == 1);
  REQUIRE(pending_drain_class(&mine, CLASS_64, 9) == 2);
}

/* The slab changes hands while it waits in the old owner's queue: who drains it sends it on. */
CHILD_TEST(sent_on_to_the_new_owner) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  free_remotely(slab, 3);
  slab_own(slab, &other);
  REQUIRE(pending_next(&mine, CLASS_64) == slab);
  REQUIRE(!pending_drain(slab, &mine) && slab->free_local == 0 && queued_in(&mine, CLASS_64) == 0);
  REQUIRE(queued_in(&other, CLASS_64) == 1 && pending_next(&other, CLASS_64) == slab);
  REQUIRE(pending_drain(slab, &other) && slab->free_local == 3);
}

/* The owner found the blocks by itself and released the slab before it could be queued. */
CHILD_TEST(too_late) {
  struct slab *slab = acquire_slab(CLASS_64, POOL_ALL, &mine.counters);
  store_relaxed(&slab->queued, 1);
  pending_enqueue(slab, &other.counters);
  REQUIRE(load_relaxed(&slab->queued) == 0 && counted(&other, COUNT_pending_enqueued) == 0);
}

CHILD_TEST(cut_off_by_a_fork) {
  free_remotely(full_slab(&mine, CLASS_64), 3);
  store_relaxed(&mine.ready_mask, 0); /* as before the pusher sets the bit */
  pending_after_fork(&mine);
  REQUIRE(load_relaxed(&mine.ready_mask) == UINT64_C(1) << CLASS_64);
  REQUIRE(pending_drain_class(&mine, CLASS_64, 9) == 1);
}
