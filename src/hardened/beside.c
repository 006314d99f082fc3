#include "hardened/beside.h"

#include "config/options.h"
#include "guard/wipe.h"
#include "hardened/live.h"
#include "report/report.h"
#include "slab/slab.h"

/* ---- one that lives ---------------------------------------------------------------------------------------- */

/* Its trailer changes in one store.  While the block comes or goes it is 0; if the program has put that there, the
 * block's own free tells. */
static void look_at_trailer(uintptr_t block, size_t block_bytes) {
  size_t requested_bytes;
  if (LIKELY(trailer_read(block, block_bytes, &requested_bytes))) return;
  if (trailer_is_absent(block, block_bytes) || !is_live(block)) return;
  if (trailer_read(block, block_bytes, &requested_bytes)) return; /* it has come meanwhile */
  struct block_description description = slab_describe(slab_of_block(block), block);
  report_overflow("free of a neighbour", block, block_bytes - TRAILER_BYTES, false, &description);
}

/* ---- one that does not ------------------------------------------------------------------------------------- */

static uintptr_t largest(uintptr_t one, uintptr_t other) { return one > other ? one : other; }
static uintptr_t smallest(uintptr_t one, uintptr_t other) { return one < other ? one : other; }

static void report(uintptr_t freed, uintptr_t written) {
  struct block_description block = slab_describe(slab_of_block(freed), freed);
  report_write_beside(freed, written, &block);
}

/* Where it reads as zero: from here to its end, and from its start to here, as far as it is looked at. */
static uintptr_t zero_from(uintptr_t end, size_t block_bytes) {
  if (options.harden < 2) return wiped_tail_begin(end, block_bytes);
  return end - smallest(block_bytes, BESIDE_BYTES);
}
static uintptr_t zero_until(uintptr_t block, size_t block_bytes) {
  if (options.harden < 2) return wiped_front_end(block, block_bytes);
  return block + smallest(block_bytes, BESIDE_BYTES);
}

/* Something in [begin, end) of a free block is not 0.  It may have been taken just now, or not be wiped yet: we take it
 * ourselves, and look again (live.h). */
COLD static void judge(uintptr_t block, size_t block_bytes, uintptr_t begin, uintptr_t end,
                       uintptr_t freed) {
  ATOMIC(uint64_t) *word = live_word(block);
  unsigned index;
  bool is_shared = os_is_multi_threaded();
  if (!live_begin(word, block, is_shared)) return;
  const struct slab *slab = slab_of_block(block);
  bool is_block = slab->block_bytes == block_bytes && slab_has_block(slab, block, &index) &&
                  !trailer_is_there(block, block_bytes);
  size_t at = is_block ? find_nonzero(begin, end - begin) : end - begin; /* else it is another's */
  if (at < end - begin) {
    report(freed, begin + at);
    wipe_block(block, block_bytes);
  }
  live_end(word, block, is_shared);
}

/* ---- beyond the slab --------------------------------------------------------------------------------------- */

struct edges {
  uintptr_t begin, blocks_end, end; /* of the slab */
};

INLINE struct edges edges_at(uintptr_t base, const struct slab_shape *shape) {
  return (struct edges){base, base + (size_t)shape->capacity * shape->block_bytes,
                        base + shape->slot_count * GRANULE_BYTES};
}

/* The unused tail of a slab is never written to. */
static void look_at_tail(uintptr_t begin, uintptr_t end, uintptr_t freed) {
  if (UNLIKELY(!wide_are_zero(begin, end))) report(freed, begin + find_nonzero(begin, end - begin));
}

static bool is_untouched(size_t granule) {
  uint64_t slots = load_relaxed(&superslab_of_granule(granule)->slots);
  return slots_unused(slots) & ~slots_dirty(slots) & run_mask(granule % GRANULES_PER_CHUNK, 1);
}

static void look_at_untouched(size_t granule, uintptr_t begin, uintptr_t freed) {
  if (LIKELY(!is_untouched(granule) || wide_is_zero_line(begin))) return;
  if (is_untouched(granule)) look_at_tail(begin, begin + BESIDE_BYTES, freed);
}

/* The slot in front of a slab's first block.  Another thread may be giving its slab back, or making one there, so
 * nothing is said unless the slot is the same all the time. */
static void look_at_slot_before(uintptr_t freed) {
  size_t granule = granule_of(freed) - 1;
  if (granule_of(freed) % GRANULES_PER_CHUNK == 0) return; /* what is there is closed */
  uint32_t entry = load_relaxed(&window.owner_map[granule]);
  unsigned class = entry & MAP_CLASS_MASK;
  if (!map_entry_is_live(entry)) look_at_untouched(granule, freed - BESIDE_BYTES, freed);
  if (!map_entry_is_live(entry) || class >= SLAB_CLASS_COUNT) return;
  struct edges edges = edges_at(slab_of_block(granule_address(granule))->base, &slab_shapes[class]);
  size_t block_bytes = class_block_bytes[class];
  if (edges.end != freed) return;
  uintptr_t begin = largest(edges.blocks_end, freed - BESIDE_BYTES);
  if (edges.blocks_end == edges.end) begin = zero_from(edges.end, block_bytes);
  if (edges.blocks_end < edges.end) {
    if (UNLIKELY(!wide_are_zero(begin, freed)) && load_relaxed(&window.owner_map[granule]) == entry)
      look_at_tail(begin, freed, freed);
  } else if (is_live(edges.end - block_bytes)) {
    return; /* its own free tells */
  } else if (UNLIKELY(!wide_are_zero(begin, freed)) &&
             load_relaxed(&window.owner_map[granule]) == entry) {
    judge(edges.end - block_bytes, block_bytes, begin, freed, freed);
  }
}

/* The same of the slot after a slab whose last block ends with it. */
static void look_at_slot_after(uintptr_t freed, uintptr_t end) {
  size_t granule = granule_of(end);
  if (granule % GRANULES_PER_CHUNK >= GRANULES_PER_CHUNK / 2) return; /* what is there is closed */
  uint32_t entry = load_relaxed(&window.owner_map[granule]);
  unsigned class = entry & MAP_CLASS_MASK;
  if (!map_entry_is_live(entry)) look_at_untouched(granule, end, freed);
  if (!map_entry_is_live(entry) || class >= SLAB_CLASS_COUNT || is_live(end)) return;
  size_t block_bytes = class_block_bytes[class];
  uintptr_t looked_at = zero_until(end, block_bytes);
  if (UNLIKELY(!wide_are_zero(end, looked_at)) && load_relaxed(&window.owner_map[granule]) == entry)
    judge(end, block_bytes, end, looked_at, freed);
}

/* Behind the last block. */
static void look_behind_last(uintptr_t freed, const struct edges *edges) {
  if (edges->blocks_end == edges->end)
    look_at_slot_after(freed, edges->end);
  else
    look_at_tail(edges->blocks_end, smallest(edges->blocks_end + BESIDE_BYTES, edges->end), freed);
}

/* ---- both sides -------------------------------------------------------------------------------------------- */

static bool lives(ATOMIC(uint64_t) *words, uintptr_t block) {
  return is_live_in(live_word_of(words, block), block);
}

_Static_assert((int)BESIDE_BYTES == (int)WIDE_LINE_BYTES, "looked at in one");

/* The end of the live block after it is not where this one's overflow ends: for those that want to know all. */
static void look_after(uintptr_t block, size_t block_bytes) {
  if (options.harden > 1) look_at_trailer(block, block_bytes);
}

/* Blocks that are larger than what is looked at: one on each side. */
static void check_large(uintptr_t block, size_t block_bytes, const struct edges *edges,
                        ATOMIC(uint64_t) *words) {
  uintptr_t before = block - block_bytes, after = block + block_bytes;
  if (UNLIKELY(block == edges->begin))
    look_at_slot_before(block);
  else if (lives(words, before))
    look_at_trailer(before, block_bytes);
  else if (UNLIKELY(!wide_are_zero(zero_from(block, block_bytes), block)))
    judge(before, block_bytes, zero_from(block, block_bytes), block, block);
  if (UNLIKELY(after >= edges->blocks_end))
    look_behind_last(block, edges);
  else if (lives(words, after))
    look_after(after, block_bytes);
  else if (UNLIKELY(!wide_are_zero(after, zero_until(after, block_bytes))))
    judge(after, block_bytes, after, zero_until(after, block_bytes), block);
}

static void check_small(uintptr_t block, size_t block_bytes, const struct edges *edges,
                        ATOMIC(uint64_t) *words) {
  uintptr_t begin = largest(edges->begin, block - BESIDE_BYTES);
  uintptr_t end = smallest(edges->blocks_end, block + block_bytes + BESIDE_BYTES);
  for (uintptr_t at = block - (block - begin) / block_bytes * block_bytes; end - at >= block_bytes;
       at += block_bytes) {
    if (at == block) continue;
    if (lives(words, at))
      look_at_trailer(at, block_bytes);
    else if (UNLIKELY(!wide_are_zero(at, at + block_bytes)))
      judge(at, block_bytes, at, at + block_bytes, block);
  }
  if (UNLIKELY(block == edges->begin)) look_at_slot_before(block);
  if (UNLIKELY(end == edges->blocks_end)) look_behind_last(block, edges);
}

void beside_check(uintptr_t block, unsigned class, ATOMIC(uint64_t) *live_words) {
  const struct slab_shape *shape = &slab_shapes[class];
  size_t block_bytes = shape->block_bytes;
  uintptr_t base = LIKELY(shape->slot_count == 1) ? round_down(block, GRANULE_BYTES)
                                                  : slab_of_block(block)->base;
  struct edges edges = edges_at(base, shape);
  if (block_bytes >= BESIDE_BYTES)
    check_large(block, block_bytes, &edges, live_words);
  else
    check_small(block, block_bytes, &edges, live_words);
}
