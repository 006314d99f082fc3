/* slab_purge.c: the part of slab_pool.h that gives pages back by age. */
#include "config/limits.h"
#include "map/commit.h"
#include "pool/slab_pool.h"

/* A pass over all SuperSlabs, from the highest address down, as the lowest are used again first. A
 * round that has done its share leaves the rest to the next one. */
static struct {
  size_t below;   /* the rest of the pass; 0: none */
  bool was_found; /* free memory was left, in the pass so far */
} pass;

/* ---- one SuperSlab --------------------------------------------------------------------------- */

/* Gives back the pages of these slots, neighbours in one call; returns the slots whose pages are
 * gone. */
static uint32_t purge_slots(struct purge *purge, struct superslab *superslab, uint32_t dirty) {
  uint32_t purged = 0;
  for (uint32_t rest = dirty, mask; rest; rest &= ~mask) {
    unsigned first = lowest_bit(rest);
    mask = run_mask(first, count_low_ones((uint64_t)rest >> first));
    if (mask != ALL_SLOTS) superslab_refuse_huge(superslab);
    uintptr_t address = chunk_address(superslab->chunk) + first * GRANULE_BYTES;
    purge_note_call(purge);
    if (os_purge((void *)address, count_bits(mask) * GRANULE_BYTES)) purged |= mask;
  }
  return purged;
}

/* For a SuperSlab that is wholly held. Strict overcommit charges unused mappings; and one that was
 * refused huge pages gets them only when it is mapped anew. */
static bool give_addresses(struct purge *purge, struct superslab *superslab) {
  bool shall_go = purge->give_addresses || os_overcommit_is_strict() ||
                  load_relaxed(&superslab->huge_state) == HUGE_REFUSED;
  if (!shall_go || !superslab->is_mapped) return false;
  purge_note_call(purge);
  return superslab_unmap(superslab);
}

static uint32_t old_slots(struct purge *purge, const struct superslab *superslab, uint32_t dirty) {
  uint32_t old = 0;
  for (; dirty; dirty &= dirty - 1) {
    unsigned slot = lowest_bit(dirty);
    if (purge_is_due(purge, load_relaxed(&superslab->freed_ms[slot]))) old |= run_mask(slot, 1);
  }
  return old;
}

uint64_t superslabs_kept_max = 64;

/* Whether more wholly free SuperSlabs are kept than that and the cgroup allow. */
static bool are_too_many_kept(void) {
  int64_t kept = (int64_t)load_relaxed(&totals.superslabs_kept); /* may be late on its way up */
  return kept > 0 &&
         (uint64_t)kept * CHUNK_BYTES > limits_budget(superslabs_kept_max * CHUNK_BYTES);
}

/* A kept SuperSlab goes as a whole, when all of it is old, or when too many are kept. */
static uint32_t due_slots(struct purge *purge, const struct superslab *superslab) {
  uint64_t slots =
      load_seq(&superslab->slots); /* acquire would do: freed_ms; pairs with slots_return */
  unsigned kinds = slot_kinds(slots);
  uint32_t dirty = slots_unused(slots) & slots_dirty(slots);
  if (kinds == KIND_CLEAN) return purge->give_addresses ? usable_slots() : 0;
  if (kinds == KIND_KEPT && are_too_many_kept()) return usable_slots();
  uint32_t old = old_slots(purge, superslab, dirty);
  return kinds != KIND_KEPT ? old : old == dirty ? usable_slots() : 0;
}

static void purge_superslab(struct purge *purge, struct superslab *superslab) {
  uint32_t due = due_slots(purge, superslab);
  if (!due) return;
  uint64_t held = slots_hold(superslab, due);
  bool is_whole = slots_unused(held) == usable_slots();
  uint32_t dirty = slots_dirty(held);
  bool is_unmapped = is_whole && give_addresses(purge, superslab);
  uint32_t purged = is_unmapped ? dirty : purge_slots(purge, superslab, dirty);
  if (is_whole) {
    purge_note_call(purge);
    superslab_purge_bitmaps(superslab);
  }
  size_t bytes = count_bits(purged) * GRANULE_BYTES;
  if (is_unmapped) fetch_add_relaxed(&totals.purged_bytes, bytes);
  fetch_or_relaxed(&superslab->purged, purged); /* ordered by slots_return */
  slots_return(superslab, slots_unused(held), purged);
  commit_give(bytes);
  purge_account(purge, bytes);
}

/* SuperSlabs that a bounded round scans: their records are in no cache. */
enum { SCANS_A_ROUND = 1024 };

void slab_pool_purge(struct purge *purge) {
  unsigned kinds = KIND_DIRTY_RUN | KIND_KEPT | (purge->give_addresses ? KIND_CLEAN : 0);
  size_t scans = purge_is_bounded(purge) ? SCANS_A_ROUND : SIZE_MAX;
  if (!pass.below || scans == SIZE_MAX) {
    pass.below = load_relaxed(&window.frontier_chunk);
    pass.was_found = false;
    empty_slabs_open_all();
  }
  for (; pass.below && scans && purge_may_go_on(purge); scans--) {
    size_t chunk = slot_index_find_below(pass.below, kinds);
    pass.below = chunk == NO_CHUNK ? 0 : chunk;
    if (chunk != NO_CHUNK) purge_superslab(purge, superslab_of_chunk(chunk));
  }
  purge->is_cut |= pass.below != 0;
  purge->work_remains |= pass.was_found || pass.below;
  pass.was_found |= purge->work_remains;
}

/* ---- reports --------------------------------------------------------------------------------- */

static uint64_t dirty_bytes(void) {
  uint64_t bytes = 0;
  size_t chunk = load_relaxed(&window.frontier_chunk);
  while ((chunk = slot_index_find_below(chunk, KIND_DIRTY_RUN | KIND_KEPT)) != NO_CHUNK) {
    uint64_t slots = load_relaxed(&superslab_of_chunk(chunk)->slots);
    bytes += count_bits(slots_unused(slots) & slots_dirty(slots)) * GRANULE_BYTES;
  }
  return bytes;
}

void slab_pool_measure(struct slab_pool_sizes *sizes) {
  *sizes = (struct slab_pool_sizes){
      .mapped_bytes = load_relaxed(&totals.superslabs_mapped) * CHUNK_BYTES,
      .dirty_bytes = empty_slabs_bytes() + dirty_bytes(),
  };
}

void slab_pool_after_fork(void) {
  store_relaxed(&totals.superslabs_kept, slot_index_repair());
  pass.below = 0;
}
