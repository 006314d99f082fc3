#include "hardened/beside.h"

#include "config/options.h"
#include "hardened/live.h"
#include "hardened/wipe.h"
#include "report/report.h"
#include "slab/slab.h"

static uintptr_t smallest(uintptr_t one, uintptr_t other) { return one < other ? one : other; }

/* ---- a live block ---------------------------------------------------------------------------- */

/* The trailer changes in one store, and is 0 while the block is being made or freed; if the program
 * wrote that 0, the block's own free reports it. */
INLINE void check_trailer(uintptr_t block, size_t block_bytes) {
  size_t requested_bytes;
  if (LIKELY(trailer_read(block, block_bytes, &requested_bytes))) return;
  if (trailer_is_absent(block, block_bytes) || !is_live(block)) return;
  if (trailer_read(block, block_bytes, &requested_bytes)) return; /* it was made meanwhile */
  struct block_description description = slab_describe(slab_of_block(block), block);
  report_overflow("free of a neighbour", block, block_bytes - TRAILER_BYTES, false, &description);
}

/* ---- a free block ---------------------------------------------------------------------------- */

static void report(uintptr_t freed, uintptr_t written) {
  struct block_description block = slab_describe(slab_of_block(freed), freed);
  report_write_beside(freed, written, &block);
}

/* The bounds of a free block's zeros that are checked: from the result to `end`, or from the
 * block's start to the result. */
static uintptr_t zero_from(uintptr_t end, size_t block_bytes) {
  if (options.harden < 2) return wiped_tail_begin(end, block_bytes);
  return end - smallest(block_bytes, BESIDE_BYTES);
}
static uintptr_t zero_until(uintptr_t block, size_t block_bytes) {
  if (options.harden < 2) return wiped_front_end(block, block_bytes);
  return block + smallest(block_bytes, BESIDE_BYTES);
}

/* Something in [begin, end) of a free block is not 0.  The block may just have been taken, or not
 * be wiped yet: this thread takes it, and checks again (live.h). */
COLD static void judge(uintptr_t block, size_t block_bytes, uintptr_t begin, uintptr_t end,
                       uintptr_t freed) {
  ATOMIC(uint64_t) *word = live_word(block);
  unsigned index;
  bool is_shared = os_is_multi_threaded();
  if (!live_begin(word, block, is_shared)) return;
  const struct slab *slab = slab_of_block(block);
  bool is_block = slab->block_bytes == block_bytes && slab_has_block(slab, block, &index) &&
                  !trailer_is_there(block, block_bytes);
  size_t bytes = end - begin;
  size_t at = is_block ? find_nonzero(begin, bytes) : bytes; /* else another thread has it */
  if (at < bytes) {
    report(freed, begin + at);
    wipe_block(block, block_bytes);
  }
  live_end(word, block, is_shared);
}

/* ---- both sides ------------------------------------------------------------------------------ */

/* An overflow of a large block rarely reaches the end of the next live one: its trailer is checked
 * at HAKMEM_HARDEN=2 only. */
INLINE void check_neighbour(uintptr_t block, size_t block_bytes, ATOMIC(uint64_t) *words,
                            bool is_before, uintptr_t freed) {
  if (is_live_in(live_word_of(words, block), block)) {
    if (is_before || block_bytes < BESIDE_BYTES || options.harden > 1)
      check_trailer(block, block_bytes);
    return;
  }
  uintptr_t end = block + block_bytes;
  uintptr_t from = is_before ? zero_from(end, block_bytes) : block;
  uintptr_t until = is_before ? end : zero_until(block, block_bytes);
  if (UNLIKELY(!wide_are_zero(from, until))) judge(block, block_bytes, from, until, freed);
}

/* The unused tail of a slab is never written to. */
static void check_tail(uintptr_t begin, uintptr_t end, uintptr_t freed) {
  if (UNLIKELY(!wide_are_zero(begin, end))) report(freed, begin + find_nonzero(begin, end - begin));
}

/* ---- beyond the slab ------------------------------------------------------------------------- */

static bool is_untouched(size_t granule) {
  uint64_t slots = load_relaxed(&superslab_of_granule(granule)->slots);
  return slots_unused(slots) & ~slots_dirty(slots) & run_mask(granule % GRANULES_PER_CHUNK, 1);
}

/* Bytes that read as zero: of a free block, or of none. */
struct zeros {
  uintptr_t begin, end;
  uintptr_t block; /* 0: no block */
  size_t block_bytes;
};

/* Finds them in another slab, adjacent to this one; `zeros` has the bytes beside this one. */
static bool find_in_slab(struct zeros *zeros, uint32_t entry, bool is_before) {
  const struct slab_shape *shape = &slab_shapes[map_slab_class(entry)];
  uintptr_t base = slab_of_block(round_down(zeros->begin, GRANULE_BYTES))->base;
  uintptr_t blocks_end = base + (size_t)shape->capacity * shape->block_bytes;
  if (is_before && blocks_end < zeros->end) {
    if (blocks_end > zeros->begin) zeros->begin = blocks_end;
    return true;
  }
  zeros->block_bytes = shape->block_bytes;
  zeros->block = is_before ? blocks_end - shape->block_bytes : base;
  if (is_before)
    zeros->begin = zero_from(zeros->end, shape->block_bytes);
  else
    zeros->end = zero_until(zeros->begin, shape->block_bytes);
  return !is_live(zeros->block);
}

/* The slot before the slab's first block, or after its last one.  Another thread may be giving its
 * slab back, or making one there, so nothing is reported unless the slot stays the same. */
static void check_slot(uintptr_t begin, uintptr_t freed) {
  size_t granule = granule_of(begin);
  if (granule / GRANULES_PER_CHUNK != granule_of(freed) / GRANULES_PER_CHUNK) return; /* closed */
  if (granule % GRANULES_PER_CHUNK >= SLOTS_PER_SUPERSLAB) return; /* closed too */
  uint32_t entry = load_relaxed(&window.owner_map[granule]);
  struct zeros zeros = {begin, begin + BESIDE_BYTES, 0, 0};
  bool is_slab = map_entry_is_live(entry) && !map_entry_is_named(entry);
  if (is_slab ? !find_in_slab(&zeros, entry, begin < freed) : !is_untouched(granule)) return;
  if (LIKELY(wide_are_zero(zeros.begin, zeros.end))) return;
  if (load_relaxed(&window.owner_map[granule]) != entry) return;
  if (zeros.block)
    judge(zeros.block, zeros.block_bytes, zeros.begin, zeros.end, freed);
  else if (is_slab || is_untouched(granule))
    check_tail(zeros.begin, zeros.end, freed);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void beside_check(uintptr_t freed, unsigned class, ATOMIC(uint64_t) *live_words) {
  const struct slab_shape *shape = &slab_shapes[class];
  size_t block_bytes = shape->block_bytes;
  size_t reach =
      block_bytes >= BESIDE_BYTES ? block_bytes : BESIDE_BYTES - (size_t)BESIDE_BYTES % block_bytes;
  uintptr_t base = LIKELY(shape->slot_count == 1) ? round_down(freed, GRANULE_BYTES)
                                                  : slab_of_block(freed)->base;
  uintptr_t blocks_end = base + (size_t)shape->capacity * block_bytes;
  uintptr_t first = freed - base > reach ? freed - reach : base;
  uintptr_t end = smallest(freed + block_bytes + reach, blocks_end);
  for (uintptr_t block = first; block < freed; block += block_bytes)
    check_neighbour(block, block_bytes, live_words, true, freed);
  for (uintptr_t block = freed + block_bytes; block < end; block += block_bytes)
    check_neighbour(block, block_bytes, live_words, false, freed);
  uintptr_t slab_end = base + shape->slot_count * GRANULE_BYTES;
  if (UNLIKELY(end == blocks_end))
    check_tail(blocks_end, smallest(blocks_end + BESIDE_BYTES, slab_end), freed);
  if (UNLIKELY(freed == base)) check_slot(base - BESIDE_BYTES, freed);
  if (UNLIKELY(end == slab_end)) check_slot(slab_end, freed);
}
