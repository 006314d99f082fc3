#include "large/range_cache.h"

#include "config/limits.h"
#include "large/density.h"

/* What a row may hold, but one block at least; where blocks are mostly untouched all its slots. */
#define ROW_BYTES ((uint64_t)1 << 20)

struct range_cache_shard range_cache_shards[RANGE_CACHE_SHARDS];
static ATOMIC(uint64_t) nonempty; /* bit per shard; a hint */

static uint64_t slot_word(size_t granule) {
  return (uint64_t)load_relaxed(&range_info(granule)->site) << 32 | (uint32_t)(granule + 1);
}

static uint64_t bit_of(unsigned shard) { return UINT64_C(1) << shard % RANGE_CACHE_SHARDS; }

/* seq: the slot was filled before; pairs with purge_shard, which clears the bit before it looks at the slots. */
static void note_nonempty(unsigned shard) {
  if (UNLIKELY(!(load_seq(&nonempty) & bit_of(shard)))) fetch_or_seq(&nonempty, bit_of(shard));
}

RESIDENT size_t range_cache_take(unsigned home, unsigned class, uint32_t site) {
  uint64_t shards = load_relaxed(&nonempty);
  for (unsigned step = 0; shards && step < RANGE_CACHE_SHARDS; step++) {
    bool may_have = shards & bit_of(home + step);
    size_t granule = may_have ? range_cache_take_from(home + step, class, site) : NO_GRANULE;
    if (granule != NO_GRANULE) return granule;
  }
  return NO_GRANULE;
}

static unsigned slots_of(unsigned class) {
  uint64_t slots = limits_budget(ROW_BYTES) / class_bytes(class);
  return slots > RANGE_CACHE_SLOTS ? RANGE_CACHE_SLOTS : slots ? (unsigned)slots : 1;
}

static bool put_into(unsigned shard, unsigned class, unsigned slots, uint64_t word) {
  ATOMIC(uint64_t) *row =
      range_cache_shards[shard % RANGE_CACHE_SHARDS].rows[class - SLAB_CLASS_COUNT];
  for (ATOMIC(uint64_t) *slot = row; slot < row + slots; slot++) {
    uint64_t empty = 0;
    /* release: the range's record before the range can be found; pairs with range_cache_take_from.  seq: note_nonempty. */
    if (load_relaxed(slot) || !cas_strong_seq(slot, &empty, word)) continue;
    note_nonempty(shard);
    return true;
  }
  return false;
}

/* What is mostly untouched takes less memory than addresses, and all of it is kept, in whatever shard has room. */
RESIDENT bool range_cache_put(size_t granule, unsigned home, unsigned class) {
  bool is_sparse = density_is_low();
  unsigned slots = is_sparse ? RANGE_CACHE_SLOTS : slots_of(class);
  uint64_t word = slot_word(granule);
  for (unsigned step = 0; step < (is_sparse ? RANGE_CACHE_SHARDS : 1); step++)
    if (put_into(home + step, class, slots, word)) return true;
  return false;
}

/* ---- emptying -------------------------------------------------------------------------------------------------- */

static bool purge_slot(ATOMIC(uint64_t) *slot, struct purge *purge, struct counters *counters) {
  uint64_t word = load_seq(slot), empty = 0; /* seq: note_nonempty */
  /* acquire: as in range_cache_take_from. */
  if (!word || !cas_strong_acq_rel(slot, &word, 0)) return false;
  size_t granule = range_cache_granule(word);
  uint32_t stamp_ms = range_info(granule)->stamp_ms;
  /* release, and seq: as in put_into. */
  if (!purge_is_due(purge, stamp_ms) && cas_strong_seq(slot, &empty, word)) return true;
  range_give(granule, stamp_ms, counters);
  return false;
}

static void purge_shard(unsigned shard, struct purge *purge, struct counters *counters) {
  bool is_left = false;
  fetch_and_seq(&nonempty,
                ~bit_of(shard)); /* seq: whoever fills a slot from here on sets it again */
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++)
    for (unsigned slot = 0; slot < RANGE_CACHE_SLOTS; slot++)
      is_left |= purge_slot(&range_cache_shards[shard].rows[class - SLAB_CLASS_COUNT][slot], purge,
                            counters);
  if (is_left) note_nonempty(shard);
}

static bool purge_shards(uint64_t shards, struct purge *purge, struct counters *counters) {
  shards &= load_relaxed(&nonempty);
  for (uint64_t left = shards; left; left &= left - 1)
    purge_shard(lowest_bit(left), purge, counters);
  return shards != 0;
}

LONG_LIVED void range_cache_purge(struct purge *purge, struct counters *counters) {
  purge_shards(UINT64_MAX, purge, counters);
}

/* Other threads have use for what they cache, and lose it once in a tick of the clock at most. */
RESIDENT bool range_cache_merge(unsigned home, struct counters *counters) {
  static ATOMIC(uint32_t) merged_ms;
  struct purge everything = PURGE_EVERYTHING;
  uint32_t now_ms, before_ms = load_relaxed(&merged_ms);
  if (density_is_low() || !load_relaxed(&nonempty)) return false;
  now_ms = (uint32_t)os_now_coarse_ms();
  /* acq_rel: orders nothing; one thread does it. */
  bool is_for_all = before_ms != now_ms && cas_strong_acq_rel(&merged_ms, &before_ms, now_ms);
  return purge_shards(is_for_all ? UINT64_MAX : bit_of(home), &everything, counters);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static bool holds_any(unsigned shard) {
  for (unsigned row = 0; row < LARGE_CLASS_COUNT; row++)
    for (unsigned slot = 0; slot < RANGE_CACHE_SLOTS; slot++)
      if (load_relaxed(&range_cache_shards[shard].rows[row][slot])) return true;
  return false;
}

void range_cache_after_fork(void) {
  for (unsigned shard = 0; shard < RANGE_CACHE_SHARDS; shard++)
    if (!(load_relaxed(&nonempty) & bit_of(shard)) && holds_any(shard)) note_nonempty(shard);
}
