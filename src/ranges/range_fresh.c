/* range_fresh.c: the part of arena.h that takes ranges of pages unused since the system gave
 * them. */
#include "os/os.h"
#include "ranges/range_purge.h"

/* A fresh piece for an arena is at least an eighth of its size: few, growing system calls. */
enum { GROWTH_DIVISOR = 8, GROWTH_MAX_CHUNKS = 32 };

RESIDENT size_t range_take_kind(enum range_kind kind, const struct range_request *request,
                                struct counters *counters) {
  for (unsigned step = 0; step < ARENA_COUNT; step++) {
    struct arena *arena = &arenas[(request->home + step) % ARENA_COUNT];
    if (arena_granules_of(arena, kind) < request->granules + request->headroom)
      continue; /* hint: not worth a lock */
    arena_lock(arena, counters);
    size_t first = arena_take(arena, kind, request, counters);
    arena_unlock(arena);
    if (first != NO_GRANULE) return first;
  }
  return NO_GRANULE;
}

/* ---- where others have mapped something ------------------------------------------------------ */

/* System calls for one range; parts not yet known to be free then stay OCCUPIED. */
enum { ISOLATE_PROBES = 64 };

/* For an extracted range without addresses, in which a foreign mapping lies: halves that are free
 * are UNMAPPED again, the others are halved.
 * NOLINTNEXTLINE(misc-no-recursion): by halves, ISOLATE_PROBES at most */
static void isolate(size_t first, size_t granules, unsigned *probes, struct counters *counters) {
  size_t part = granules / 2;
  if (!part || !*probes || !range_prepare_cut(first, first + part)) {
    range_put_back(first, RANGE_OCCUPIED, 0, counters);
    return;
  }
  range_divide(first, part, counters);
  for (unsigned half = 0; half < 2; half++) {
    size_t begin = half ? first + part : first, size = half ? granules - part : part;
    if (*probes) --*probes;
    if (os_is_occupied((const void *)granule_address(begin), size << GRANULE_SHIFT))
      isolate(begin, size, probes, counters);
    else
      range_put_back(begin, RANGE_UNMAPPED, 0, counters);
  }
}

/* Occupied addresses may be free again: they are tried once more, at intervals. */
static NOINLINE void forgive_occupied(struct counters *counters) {
  static ATOMIC(uint32_t) tried_ms;
  if (LIKELY(!arenas_bytes_of(RANGE_OCCUPIED))) return;
  if (!window_tries_occupied_again(&tried_ms)) return;
  for (struct arena *arena = arenas; arena < arenas + ARENA_COUNT; arena++) {
    arena_lock(arena, counters);
    while (arena_granules_of(arena, RANGE_OCCUPIED)) {
      uint32_t first = set_of(arena, RANGE_OCCUPIED)->oldest;
      arena_extract(arena, first);
      arena_insert(arena, first, range_record(first)->info.granules, RANGE_UNMAPPED);
    }
    arena_unlock(arena);
  }
}

/* Ranges that one request may find occupied. */
enum { UNMAPPED_TRIES = 4 };

/* Memory mapped for a request belongs to the request and its headroom, which is free. */
static size_t part_from_headroom(size_t first, const struct range_request *request,
                                 struct counters *counters) {
  size_t end = first + request->granules;
  if (!request->headroom) return first;
  if (!range_prepare_cut(first, end)) {
    range_put_back(first, RANGE_CLEAN, 0, counters);
    return NO_GRANULE;
  }
  range_divide(first, request->granules, counters);
  range_put_back(end, RANGE_CLEAN, 0, counters);
  arena_lock(arena_of(first), counters);
  range_set_boundaries(first, request->granules, RANGE_LIVE);
  arena_unlock(arena_of(first));
  return first;
}

static NOINLINE size_t take_unmapped(const struct range_request *request,
                                     struct counters *counters) {
  struct range_request whole = *request;
  whole.granules += whole.headroom;
  whole.headroom = 0;
  forgive_occupied(counters);
  for (unsigned tries = 0; tries < UNMAPPED_TRIES; tries++) {
    size_t first = range_take_kind(RANGE_UNMAPPED, &whole, counters);
    if (first == NO_GRANULE) return NO_GRANULE;
    range_record(first)->info.is_closed = false;
    enum os_map_result result =
        os_map_at((void *)granule_address(first), whole.granules << GRANULE_SHIFT);
    if (result == OS_MAPPED) {
      range_keep_huge_out(first, whole.granules);
      return part_from_headroom(first, request, counters);
    }
    if (result == OS_NO_MEMORY) {
      range_put_back(first, RANGE_UNMAPPED, 0, counters); /* its purged part has been counted */
      return NO_GRANULE;
    }
    unsigned probes = ISOLATE_PROBES;
    isolate(first, whole.granules, &probes, counters);
  }
  return NO_GRANULE;
}

/* ---- fresh ones ------------------------------------------------------------------------------ */

/* Each `step`th chunk and the last get records, or none does. */
RESIDENT static bool publish_chunks(const struct arena *arena, size_t first_chunk,
                                    size_t chunk_count, size_t step, char huge_state) {
  size_t index = 0, last = chunk_count - 1;
  while (range_add_records(first_chunk + index, (unsigned)(arena - arenas), huge_state)) {
    if (index == last) return true;
    index = last - index < step ? last : index + step;
  }
  while (index) chunk_publish(first_chunk + --index, NULL);
  return false;
}

/* Where one request fills chunks huge pages waste nothing; smaller ranges may leave gaps. */
static char allow_huge(size_t chunk, size_t chunk_count, bool are_filled) {
  if (are_filled) return huge_let_in(chunk, chunk_count);
  huge_keep_out(chunk_address(chunk), chunk_count << CHUNK_SHIFT);
  return HUGE_KEPT_OUT;
}

/* Hardened mode closes unused memory. Closing a very large range, of which few pages are used,
 * costs more than it finds. */
#define CLOSED_MAX_BYTES ((size_t)64 << 20)

/* Hardened mode looks up an address's range with every checked call (heap/object.c): records at
 * these distances make that fast. */
enum { NOTED_CHUNKS = 128 };

/* Fresh chunks from the frontier, given to the arena as one CLEAN range. */
RESIDENT static bool add_chunks(struct arena *arena, size_t chunk_count, size_t wanted_granules,
                                struct counters *counters) {
  const bool is_hardened = window.hardened_bit;
  const struct window_piece piece = {chunk_count, is_hardened, 0};
  size_t chunk = window_grow(piece);
  if (chunk == NO_CHUNK) return false;
  bool are_filled = wanted_granules >= GRANULES_PER_CHUNK;
  size_t step = !are_filled ? 1 : is_hardened ? NOTED_CHUNKS : chunk_count; /* range_record.h */
  char huge_state = allow_huge(chunk, chunk_count, are_filled);
  if (!publish_chunks(arena, chunk, chunk_count, step, huge_state)) {
    window_give_back(chunk, piece);
    return false;
  }
  size_t bytes = chunk_count << CHUNK_SHIFT;
  bool is_closed = UNLIKELY(is_hardened) && bytes <= CLOSED_MAX_BYTES &&
                   os_close_pages((void *)chunk_address(chunk), bytes);
  arena_lock(arena, counters);
  arena_add_chunks(arena, chunk, chunk_count, is_closed);
  arena_unlock(arena);
  return true;
}

/* Grows at least by the needed size; by more when the arena is large and the system allows. */
RESIDENT static bool grow_by(struct arena *arena, size_t granules, struct counters *counters) {
  size_t needed = (granules + GRANULES_PER_CHUNK - 1) / GRANULES_PER_CHUNK;
  size_t has = arena_is_in_use(arena) ? load_relaxed(&arena->granules) : 0;
  size_t wanted = has / GRANULES_PER_CHUNK / GROWTH_DIVISOR;
  if (wanted > GROWTH_MAX_CHUNKS) wanted = GROWTH_MAX_CHUNKS;
  if (wanted > needed && add_chunks(arena, wanted, granules, counters)) return true;
  return add_chunks(arena, needed, granules, counters);
}

RESIDENT static bool grow_arena(const struct range_request *request, struct counters *counters) {
  size_t granules = request->granules + request->headroom + request->alignment_granules - 1;
  return grow_by(&arenas[request->home % ARENA_COUNT], granules, counters);
}

bool range_add_behind(size_t end, size_t wanted, struct counters *counters) {
  struct arena *arena = arena_of(end - 1);
  size_t at = end;
  arena_lock(arena, counters);
  for (const struct range *next; (next = arena_free_at(arena, at, RANGE_DIRTY, RANGE_CLEAN));)
    at += next->info.granules;
  arena_unlock(arena);
  bool is_last = at == load_relaxed(&window.frontier_chunk) * GRANULES_PER_CHUNK;
  return is_last && at < end + wanted && grow_by(arena, end + wanted - at, counters);
}

RESIDENT size_t range_take_clean(const struct range_request *request, struct counters *counters) {
  size_t first = range_take_kind(RANGE_CLEAN, request, counters);
  if (first == NO_GRANULE && (arenas_bytes_of(RANGE_UNMAPPED) || arenas_bytes_of(RANGE_OCCUPIED)))
    first = take_unmapped(request, counters);
  /* Other threads may take what was added. */
  for (unsigned tries = 16; first == NO_GRANULE && tries && grow_arena(request, counters); tries--)
    first = range_take_kind(RANGE_CLEAN, request, counters);
  return first;
}
