#include "reclaim/feasible.h"

#include "cache/capacity.h"
#include "cache/quarantine.h"
#include "config/limits.h"
#include "pool/slab_pool.h"
#include "ranges/range_magazine.h"

/* The bytes that a Big request needs in one piece: a range is found by its size and alignment
 * together. */
static size_t needed_bytes(const struct allocation *allocation) {
  size_t bytes = allocation->size, alignment = allocation->alignment;
  return alignment > GRANULE_BYTES ? bytes + alignment : bytes; /* both at most REQUEST_MAX_BYTES */
}

/* A piece lies after the frontier, or in the part taken before. */
static bool window_may_have(size_t bytes) {
  size_t limit = load_relaxed(&window.chunk_limit), frontier = load_relaxed(&window.frontier_chunk);
  size_t ahead = limit > frontier ? limit - frontier : 0;
  size_t chunks = bytes >> CHUNK_SHIFT;
  return chunks <= ahead || chunks <= frontier;
}

bool feasible_at_all(const struct allocation *allocation) {
  if (limits.hard_bytes && allocation->size > limits.hard_bytes) {
    fetch_add_relaxed(&totals.limit_hard_refusals, 1);
    return false;
  }
  return window_may_have(needed_bytes(allocation));
}

/* ---- after the first try --------------------------------------------------------------------- */

/* The bytes in the thread's own caches, which it would give back. */
static int64_t own_cached_bytes(const struct heap *heap) {
  if (!heap_is_real(heap)) return 0;
  size_t bytes = heap->quarantine ? heap->quarantine->bytes : 0;
  return (int64_t)bytes + capacity_cached_bytes(heap);
}

/* Bytes in blocks that cannot be given back now: the program's, and those in other threads'
 * caches. */
static uint64_t bytes_out_of_reach(const struct heap *heap) {
  int64_t bytes =
      (int64_t)(load_relaxed(&totals.large_live_bytes) + load_relaxed(&totals.big_live_bytes) -
                load_relaxed(&totals.uncounted_bytes)) -
      own_cached_bytes(heap) - (int64_t)range_magazines_bytes();
  for (const struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    bytes += load_relaxed(&owner->bytes_out);
  return bytes > 0 ? (uint64_t)bytes : 0;
}

/* The bytes of hakmem's address space that could serve. */
static uint64_t bytes_within_reach(uint64_t out_of_reach) {
  struct slab_pool_sizes slabs;
  struct range_sizes ranges;
  slab_pool_measure(&slabs);
  range_measure(&ranges);
  uint64_t mapped = slabs.mapped_bytes + ranges.mapped_bytes;
  return mapped > out_of_reach ? mapped - out_of_reach : 0;
}

bool feasible_after_giving_back(const struct heap *heap, const struct allocation *allocation) {
  size_t needed = needed_bytes(allocation);
  if (needed <= LARGE_MAX_BYTES && !limits.hard_bytes)
    return true; /* without a walk over all heaps */
  uint64_t out_of_reach = bytes_out_of_reach(heap);
  if (limits.hard_bytes &&
      (allocation->size > limits.hard_bytes || out_of_reach > limits.hard_bytes - allocation->size))
    return false;
  if (needed <= LARGE_MAX_BYTES) return true;
  if (needed > os_data_limit())
    return false; /* closed pages may not count there: the bytes within reach do not decide */
  uint64_t reach = bytes_within_reach(out_of_reach);
  return needed <= reach || os_could_map(round_up(needed - reach, os_page_bytes()));
}
