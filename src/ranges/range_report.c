/* range_report.c: the part of range.h about the existing ranges. */
#include "ranges/range.h"

static bool covers(size_t first, size_t granule) {
  const struct range *candidate = range_record_if_any(first);
  return candidate && load_relaxed(&window.owner_map[first]) && first <= granule &&
         load_relaxed(&candidate->info.granules_shown) > granule - first;
}

size_t range_covering(size_t granule, size_t steps_max) {
  for (size_t at = granule; steps_max; at--, steps_max--) {
    const struct range *here = range_record_if_any(at);
    /* The record's word counts only if it proves right; other threads may be writing it. The entry
     * of a freed block proves nothing: another block may have begun after it. */
    size_t first = here ? load_relaxed(&here->first_shown) : at;
    if (here && covers(first, granule) && map_entry_is_live(load_relaxed(&window.owner_map[first])))
      return first;
    if (covers(at, granule)) return at;
    if (load_relaxed(&window.owner_map[at])) return NO_GRANULE;
    /* A block never begins in a chunk without records that is not one of slabs: the chunk lies
     * within a block, or has none. */
    if (!here && chunk_metadata(at / GRANULES_PER_CHUNK)) return NO_GRANULE;
    if (!here) at = round_down(at, GRANULES_PER_CHUNK);
    if (at == 0) return NO_GRANULE;
  }
  return NO_GRANULE;
}

void range_note_begin(size_t granule, size_t from) {
  size_t last = granule + range_record(granule)->info.granules - 1;
  for (size_t at = from; at < last;) {
    struct range *here = range_record_if_any(at);
    if (here) show(here, first, (uint32_t)granule);
    at = here ? at + 1 : next_chunk(at);
  }
}

void range_measure(struct range_sizes *sizes) {
  *sizes = (struct range_sizes){.mapped_bytes = arenas_bytes_set_aside(),
                                .dirty_bytes = arenas_bytes_of(RANGE_DIRTY),
                                .clean_bytes = arenas_bytes_of(RANGE_CLEAN)};
  uint64_t unmapped_bytes = arenas_bytes_of(RANGE_UNMAPPED) + arenas_bytes_of(RANGE_OCCUPIED);
  for (const struct arena *arena = arenas; arena < arenas + ARENA_COUNT; arena++)
    sizes->mapped_bytes += load_relaxed(&arena->granules) << GRANULE_SHIFT;
  sizes->mapped_bytes -= unmapped_bytes;
}

uint64_t range_count_dirty(struct counters *counters) {
  uint64_t ranges = 0;
  for (struct arena *arena = arenas; arena < arenas + ARENA_COUNT; arena++) {
    if (!arena_granules_of(arena, RANGE_DIRTY)) continue;
    arena_lock(arena, counters);
    uint32_t at = set_of(arena, RANGE_DIRTY)->oldest;
    for (; at != NO_RANGE; at = range_record(at)->younger) ranges++;
    arena_unlock(arena);
  }
  return ranges;
}
