#include "large/site_cache.h"

#include "config/options.h"
#include "os/os.h"

static uint64_t slot_word(size_t granule, size_t granules) {
  return (uint64_t)granules << 32 | (uint32_t)(granule + 1);
}
static size_t slot_granule(uint64_t word) { return (uint32_t)word - 1; }
static size_t slot_granules(uint64_t word) { return word >> 32; }

static unsigned shard_of(uint32_t site) { return mix_bits(site) % SITE_SHARDS; }

static ATOMIC(uint64_t) *shard_slots(struct site_cache *cache, uint32_t site) {
  return cache->shards[shard_of(site)].slots;
}

/* What the site asked for last, in one word: | asked twice : 1 | most granules : 31 | fewest : 32 | */
#define ASKED_TWICE (UINT64_C(1) << 63)

static void note_wanted(struct site_cache *cache, uint32_t site, size_t fewest, size_t most) {
  ATOMIC(uint64_t) *wanted = &cache->shards[shard_of(site)].wanted;
  uint64_t before = load_relaxed(wanted), word = (uint64_t)most << 32 | fewest;
  if ((before & ~ASKED_TWICE) == word) word |= ASKED_TWICE;
  if (before != word) store_relaxed(wanted, word); /* the line stays clean where sizes repeat */
}

bool site_cache_wants(const struct site_cache *cache, uint32_t site, size_t granules) {
  uint64_t word = load_relaxed(&cache->shards[shard_of(site)].wanted);
  size_t fewest = (uint32_t)word, most = (word & ~ASKED_TWICE) >> 32;
  return word & ASKED_TWICE && granules >= fewest && granules <= most;
}

/* The range in the slot is ours if we empty it. */
static bool empty_slot(struct site_cache *cache, ATOMIC(uint64_t) *slot, uint64_t word) {
  /* acquire: the range's record; pairs with the release in site_cache_put. */
  if (!cas_strong_acq_rel(slot, &word, 0)) return false;
  fetch_sub_relaxed(&cache->cached_bytes, slot_granules(word) << GRANULE_SHIFT);
  return true;
}

RESIDENT size_t site_cache_take(struct site_cache *cache, uint32_t site, size_t granules,
                                size_t granules_max) {
  ATOMIC(uint64_t) *slots = shard_slots(cache, site);
  note_wanted(cache, site, granules, granules_max);
  for (unsigned slot = 0; slot < SLOTS_PER_SHARD; slot++) {
    uint64_t word = load_relaxed(&slots[slot]);
    size_t has = slot_granules(word);
    if (word && has >= granules && has <= granules_max && empty_slot(cache, &slots[slot], word))
      return slot_granule(word);
  }
  return NO_GRANULE;
}

RESIDENT bool site_cache_put(struct site_cache *cache, uint32_t site, size_t granule,
                             uint64_t budget_bytes) {
  struct range_info *info = range_info(granule);
  uint64_t bytes = (uint64_t)info->granules << GRANULE_SHIFT;
  if (load_relaxed(&cache->cached_bytes) + bytes > budget_bytes) return false;
  ATOMIC(uint64_t) *slots = shard_slots(cache, site);
  for (unsigned slot = 0; slot < SLOTS_PER_SHARD; slot++) {
    uint64_t empty = 0;
    if (load_relaxed(&slots[slot])) continue;
    fetch_add_relaxed(&cache->cached_bytes, bytes);
    /* release: the range's record before the range can be found; pairs with empty_slot. */
    if (cas_strong_acq_rel(&slots[slot], &empty, slot_word(granule, info->granules))) return true;
    fetch_sub_relaxed(&cache->cached_bytes, bytes);
  }
  return false;
}

LONG_LIVED void site_cache_purge(struct site_cache *cache, struct purge *purge,
                                 struct counters *counters) {
  if (!load_relaxed(&cache->cached_bytes)) return;
  for (unsigned shard = 0; shard < SITE_SHARDS; shard++) {
    for (unsigned slot = 0; slot < SLOTS_PER_SHARD; slot++) {
      ATOMIC(uint64_t) *at = &cache->shards[shard].slots[slot];
      uint64_t word =
          load_acquire(at); /* pairs with site_cache_put: the stamp may be stale, not torn */
      if (!word || !empty_slot(cache, at, word)) continue;
      size_t granule = slot_granule(word);
      uint32_t stamp_ms = range_info(granule)->stamp_ms;
      uint64_t empty = 0;
      if (!purge_is_due(purge, stamp_ms) && cas_strong_acq_rel(at, &empty, word))
        fetch_add_relaxed(&cache->cached_bytes, slot_granules(word) << GRANULE_SHIFT);
      else
        range_give(granule, stamp_ms, counters);
    }
  }
}

static size_t take_fresh(const struct range_request *request, struct counters *counters) {
  size_t granule = range_take_fresh(request, counters);
  if (granule != NO_GRANULE && options.prefault)
    os_populate((void *)granule_address(granule), request->granules << GRANULE_SHIFT);
  return granule;
}

RESIDENT size_t site_cache_take_range(struct site_cache *cache, const struct range_request *request,
                                      struct counters *counters) {
  size_t granule = range_take_used(request, counters);
  if (granule != NO_GRANULE || request->source == FROM_FREED_WITH_HEADROOM) return granule;
  if (load_relaxed(&cache->cached_bytes)) {
    struct purge everything = PURGE_EVERYTHING;
    site_cache_purge(cache, &everything, counters);
    granule = range_take_used(request, counters);
  }
  if (granule != NO_GRANULE || request->source == FROM_FREED) return granule;
  return take_fresh(request, counters);
}
