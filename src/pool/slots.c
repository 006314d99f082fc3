#include "pool/slots.h"

#include <string.h>

#include "config/options.h"
#include "map/commit.h"

bool superslab_is_valid(const struct superslab *superslab, uint64_t slots) {
  return chunk_metadata(superslab->chunk) == superslab && !(slots_unused(slots) & ~usable_slots());
}

/* `slots` of the SuperSlab have been changed. */
RESIDENT static void note_change(struct superslab *superslab, uint64_t before, uint64_t after) {
  ASSERT(superslab_is_valid(superslab, before) && superslab_is_valid(superslab, after));
  unsigned had = slot_kinds(before), has = slot_kinds(after);
  if (had == has) return; /* the thread that changed the kinds before notes them */
  if ((had | has) & KIND_KEPT)
    fetch_add_relaxed(&totals.superslabs_kept, has == KIND_KEPT ? 1 : UINT64_MAX);
  slot_index_note(superslab->chunk, &superslab->slots, after);
}

/* The index was out of date here. */
static void note_again(const struct superslab *superslab) {
  /* seq: as new as the index; pairs with slots_return. */
  slot_index_note(superslab->chunk, &superslab->slots, load_seq(&superslab->slots));
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Slabs of one slot grow from the bottom of a SuperSlab, longer ones from its top, so that the ones
 * do not cut the others' runs. */
static unsigned choose_run(uint32_t starts, unsigned slot_count) {
  return slot_count == 1 ? lowest_bit(starts) : highest_bit(starts);
}

/* HAKMEM_HARDEN=1 clears only the ends of a large block when it is freed; another class's blocks
 * have other ends. */
COLD static void wipe(const struct superslab *superslab, uint32_t mask) {
  uintptr_t address = chunk_address(superslab->chunk) + lowest_bit(mask) * GRANULE_BYTES;
  memset((void *)address, 0,
         count_bits(mask) * GRANULE_BYTES); /* NOLINT: memory comes from addresses */
}

/* Takes these neighbours into use; `before`: all slots of their SuperSlab until then. */
RESIDENT static void use_run(struct superslab *superslab, uint64_t before, uint32_t mask,
                             size_t taken_bytes) {
  ASSERT(superslab->is_mapped);
  uint32_t fresh = mask & ~slots_dirty(before); /* the pages of dirty ones are counted already */
  commit_settle(taken_bytes, count_bits(fresh) * GRANULE_BYTES);
  if (UNLIKELY(options.harden == 1) && fresh != mask) wipe(superslab, mask);
  uint32_t again = load_relaxed(&superslab->purged) & mask;
  if (LIKELY(!again)) return;
  fetch_and_relaxed(&superslab->purged, ~again);
  fetch_add_relaxed(&totals.refaulted_bytes, count_bits(again) * GRANULE_BYTES);
}

/* The first slot, or -1. Not from a SuperSlab that is wholly UNUSED: it may have no addresses. */
RESIDENT static int take_run_of(struct superslab *superslab, unsigned slot_count,
                                size_t taken_bytes, struct counters *counters) {
  uint64_t slots = load_seq(&superslab->slots); /* acquire would do: see below */
  for (;;) {
    uint32_t unused = slots_unused(slots);
    uint32_t wanted = taken_bytes ? unused : unused & slots_dirty(slots);
    uint32_t starts = run_starts(wanted, slot_count);
    if (!starts || unused == usable_slots()) return -1;
    unsigned first = choose_run(starts, slot_count);
    uint32_t mask = run_mask(first, slot_count);
    uint64_t after = (slots & ~(uint64_t)mask) | slots_as_dirty(mask);
    /* acquire (seq): the stores to the slots before slots_return set the bits. */
    if (cas_weak_seq(&superslab->slots, &slots, after)) {
      note_change(superslab, slots, after);
      use_run(superslab, slots, mask, taken_bytes);
      return (int)first;
    }
    count(counters, COUNT_cas_retries);
  }
}

RESIDENT struct slot_run slots_take_run(unsigned slot_count, size_t taken_bytes,
                                        struct counters *counters) {
  unsigned kind = kind_of_run(slot_count, !taken_bytes);
  for (size_t chunk; (chunk = slot_index_find(kind)) != NO_CHUNK;) {
    struct superslab *superslab = superslab_of_chunk(chunk);
    int first = take_run_of(superslab, slot_count, taken_bytes, counters);
    if (first >= 0) return (struct slot_run){superslab, (unsigned)first, false};
    note_again(superslab);
  }
  return (struct slot_run){0};
}

RESIDENT static bool take_whole(struct superslab *superslab, unsigned kind) {
  uint64_t slots = load_seq(&superslab->slots); /* seq: as in slots_take_run */
  while (slot_kinds(slots) == kind) {
    uint64_t after = slots & ~(uint64_t)usable_slots();
    /* acquire (seq): as in take_run_of. */
    if (cas_weak_seq(&superslab->slots, &slots, after)) {
      note_change(superslab, slots, after);
      return true;
    }
  }
  note_again(superslab);
  return false;
}

RESIDENT struct superslab *slots_take_whole(unsigned kind) {
  for (size_t chunk; (chunk = slot_index_find(kind)) != NO_CHUNK;)
    if (take_whole(superslab_of_chunk(chunk), kind)) return superslab_of_chunk(chunk);
  return NULL;
}

uint64_t slots_hold(struct superslab *superslab, uint32_t mask) {
  /* acquire (seq): as in take_run_of; seq: before the index, as runs of a whole SuperSlab may be
   * left. */
  uint64_t before = fetch_and_seq(&superslab->slots, ~(uint64_t)mask);
  note_change(superslab, before, before & ~(uint64_t)mask);
  uint32_t held = slots_unused(before) & mask;
  return held | slots_as_dirty(held & slots_dirty(before));
}

/* ---- returning ------------------------------------------------------------------------------- */

void slots_return(struct superslab *superslab, uint32_t mask, uint32_t purged) {
  uint64_t change =
      mask - slots_as_dirty(purged); /* no carry: they are not UNUSED, and these are dirty */
  /* seq: all writes about the slots before the bits (pairs with take_run_of), and the bits before
   * the look at the index (pairs with slot_index_note). */
  uint64_t before = fetch_add_seq(&superslab->slots, change);
  ASSERT(!(slots_unused(before) & mask) && !(purged & ~slots_dirty(before)));
  note_change(superslab, before, before + change);
}

RESIDENT struct slot_run slots_divide(struct superslab *superslab, unsigned slot_count,
                                      size_t taken_bytes) {
  unsigned first = choose_run(run_starts(usable_slots(), slot_count), slot_count);
  uint32_t mask = run_mask(first, slot_count);
  uint64_t change = (usable_slots() & ~mask) | slots_as_dirty(mask);
  uint64_t before = fetch_or_seq(&superslab->slots, change); /* seq: as slots_return */
  note_change(superslab, before, before | change);
  use_run(superslab, before, mask, taken_bytes);
  return (struct slot_run){superslab, first, false};
}
