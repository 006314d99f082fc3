/* src/ranges/range_cut: the records of a huge range do not grow with it, and it is cut, merged,
 * grown and given back as any other. */
#include "ranges/arena.h"

#include "config/options.h"
#include "heap/object.h"
#include "heaps.h"
#include "map/commit.h"
#include "ranges.h"
#include "ranges/big.h"

#define GIB ((size_t)1 << 30)
enum { CHUNKS = 512, WHOLE = CHUNKS * (int)GRANULES_PER_CHUNK }; /* 1 GiB */
static const size_t inside = 300 * (size_t)GRANULES_PER_CHUNK + 5;

static void purge(bool give_addresses) {
  struct purge everything = PURGE_EVERYTHING;
  everything.give_addresses = give_addresses;
  range_purge(&everything, &counters);
}

static bool has_records(size_t granule) { return range_record_if_any(granule) != NULL; }

static uint64_t metadata_bytes(void) { return load_relaxed(&totals.metadata_bytes); }

/* No records can be had any more. */
static void refuse_records(bool are_refused) {
  limits.hard_bytes = are_refused ? load_relaxed(&totals.committed_bytes) : 0;
}

/* ---- what is known --------------------------------------------------------------------------- */

static uint64_t records_of(size_t granules) {
  uint64_t before = metadata_bytes();
  REQUIRE(take(granules) != NO_GRANULE);
  return metadata_bytes() - before;
}

CHILD_TEST(known_of_a_huge_range) {
  uint64_t of_three_chunks = records_of(3 * GRANULES_PER_CHUNK);
  REQUIRE(of_three_chunks && records_of(WHOLE) == of_three_chunks);
  REQUIRE(records_of(16 * (size_t)WHOLE) == of_three_chunks);
  require_laws();
}

/* Where parts of many requests lie all chunks have records from the beginning. */
CHILD_TEST(known_of_small_ones) {
  for (unsigned index = 0; index < 2000; index++) {
    size_t granule = take(3);
    REQUIRE(has_records(granule) && has_records(granule + 2));
  }
}

/* In hardened mode few chunks without records lie between two that tell where the block begins. */
CHILD_TEST(known_in_hardened_mode) {
  window.hardened_bit = MAP_HARDENED;
  size_t first = take(WHOLE);
  owner_map_set(first, MAP_ENTRY_BIG_LIVE);
  range_note_begin(first, first);
  for (size_t at = first; at < first + WHOLE; at += GRANULES_PER_CHUNK)
    REQUIRE(range_covering(at, 256) == first);
  REQUIRE(metadata_bytes() < 16 * sizeof(struct range_chunk));
}

/* The rest of a freed block does not hide a younger one that begins inside it. */
CHILD_TEST(known_behind_a_freed_block) {
  enum { PART = 16 };
  size_t live = take(1), before = take(1), first = before + 1;
  REQUIRE(take(PART) == first && live % PART == 0);
  give(first); /* its last record tells where it began */
  purge(false);
  REQUIRE(take(8 * PART) == first);
  owner_map_set(first, MAP_ENTRY_BIG_FREE);
  give(first);
  give(before);
  size_t younger = take_from(4 * PART, PART, 0);
  REQUIRE(younger > first && younger < first + PART);
  owner_map_set(younger, MAP_ENTRY_BIG_LIVE);
  for (size_t at = younger; at < younger + 4 * PART; at++)
    REQUIRE(range_covering(at, SIZE_MAX) == younger);
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* Parts of it serve other requests, and it is whole again afterwards. */
CHILD_TEST(cut_and_merge) {
  size_t first = take(WHOLE);
  REQUIRE(!has_records(first + inside));
  give(first);
  size_t small = take(3), large = take(inside), rest = take(WHOLE - 3 - inside);
  REQUIRE(small == first && large == first + 3 && rest == large + inside);
  REQUIRE(has_records(rest - 1) && has_records(rest) &&
          !has_records(rest + 4 * GRANULES_PER_CHUNK));
  require_laws();
  give(large);
  give(small);
  give(rest);
  require_laws();
  REQUIRE(take(WHOLE) == first && range_info(first)->granules == WHOLE);
}

/* At a chunk's border two chunks get records. */
CHILD_TEST(cut_between_chunks) {
  size_t first = take(WHOLE);
  give(first);
  size_t border = (first / GRANULES_PER_CHUNK + 100) * GRANULES_PER_CHUNK;
  size_t part = take(border - first), next = take(1);
  REQUIRE(part == first && next == border && has_records(border - 1) && has_records(border));
  REQUIRE(!has_records(border - 1 - GRANULES_PER_CHUNK));
  require_laws();
}

/* A place in its middle: both sides stay free. */
CHILD_TEST(cut_for_an_alignment) {
  size_t first = take(2 * WHOLE);
  give(first);
  size_t alignment = WHOLE / 2, aligned = take_from(7, alignment, 0);
  REQUIRE(granule_address(aligned) % (alignment * GRANULE_BYTES) == 0);
  REQUIRE(aligned > first && aligned < first + 2 * WHOLE);
  require_laws();
  give(aligned);
  require_laws();
  REQUIRE(take(2 * WHOLE) == first);
}

CHILD_TEST(cut_refused) {
  size_t first = take(WHOLE);
  memset(bytes_of(first), 7, GRANULE_BYTES);
  give(first);
  refuse_records(true);
  REQUIRE(take(inside) == NO_GRANULE);
  require_laws();
  REQUIRE(take(WHOLE) == first); /* whole it can be had */
  REQUIRE(!range_shrink(first, inside, &counters) && range_info(first)->granules == WHOLE);
  refuse_records(false);
  REQUIRE(range_shrink(first, inside, &counters) && range_info(first)->granules == inside);
  require_laws();
  REQUIRE(take(WHOLE - inside) == first + inside && *bytes_of(first) == 7);
}

/* ---- growing --------------------------------------------------------------------------------- */

/* Into a huge neighbour, of which the rest stays as it was. */
CHILD_TEST(extend_into) {
  size_t left = take(2 * GRANULES_PER_CHUNK), right = take(WHOLE);
  REQUIRE(right == left + 2 * GRANULES_PER_CHUNK);
  give(right);
  purge(false);
  uint64_t committed = load_relaxed(&totals.committed_bytes);
  refuse_records(true);
  limits.hard_bytes += GIB; /* there is enough for the pages, not for that and records */
  REQUIRE(commit_take(GIB - inside * GRANULE_BYTES));
  REQUIRE(!range_extend(left, 2 * GRANULES_PER_CHUNK + inside, &counters));
  commit_give(GIB - inside * GRANULE_BYTES);
  refuse_records(false);
  require_laws();
  REQUIRE(range_extend(left, 2 * GRANULES_PER_CHUNK + inside, &counters));
  REQUIRE(range_info(left)->granules == 2 * GRANULES_PER_CHUNK + inside);
  uint64_t grown = load_relaxed(&totals.committed_bytes) - committed;
  REQUIRE(grown >= inside * GRANULE_BYTES && grown < inside * GRANULE_BYTES + GRANULE_BYTES);
  require_laws();
  REQUIRE(take(WHOLE - inside) == right + inside && range_info(right + inside)->is_zero);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static uint64_t refaulted_granules(void) {
  return load_relaxed(&totals.refaulted_bytes) / GRANULE_BYTES;
}

/* Purged memory counts once when it is used again, and untouched memory does not. A long part that
 * is cut off is purged at once. */
CHILD_TEST(used_again) {
  size_t first = take(WHOLE), cut = WHOLE - inside;
  REQUIRE(range_shrink(first, inside, &counters) && refaulted_granules() == 0);
  give(take(cut));
  REQUIRE(refaulted_granules() == cut);
  purge(false);
  REQUIRE(range_extend(first, inside + 10, &counters) && refaulted_granules() == cut + 10);
  size_t rest = take(cut - 10);
  REQUIRE(rest == first + inside + 10 && refaulted_granules() == 2 * cut);
  give(rest);
  REQUIRE(take(cut - 10) == rest && refaulted_granules() == 2 * cut);
}

/* A foreign mapping lies in the middle of its addresses: halves serve on. */
CHILD_TEST(occupied_in_the_middle) {
  size_t first = take(WHOLE);
  give(first);
  purge(true);
  void *wall = bytes_of(first + inside);
  REQUIRE(os_map_at(wall, GRANULE_BYTES) == OS_MAPPED);
  REQUIRE(take(WHOLE) != first && arenas_bytes_of(RANGE_OCCUPIED) == GRANULE_BYTES);
  require_laws();
  REQUIRE(take(WHOLE / 2) == first); /* 300 chunks of 512 */
}

/* The map of owners gives its pages back with the blocks that began there. */
CHILD_TEST(old_heads_are_forgotten) {
  size_t first = take(WHOLE);
  const size_t heads[] = {first + 1, first + 4000, first + inside, first + WHOLE - 1};
  for (unsigned refused = 0; refused < 2; refused++) {
    for (unsigned index = 0; index < 4; index++) owner_map_set(heads[index], 0x123);
    owner_map_set(first - 1, 0x123);
    owner_map_set(first + WHOLE, 0x123);
    if (refused) os_fake_fail(1u << OS_CALL_PURGE, 1, 1);
    owner_map_clear(first, WHOLE);
    for (size_t at = first; at < first + WHOLE; at++) REQUIRE(!window.owner_map[at]);
    REQUIRE(window.owner_map[first - 1] && window.owner_map[first + WHOLE]);
    REQUIRE(os_fake.refused[OS_CALL_PURGE] == refused);
  }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

BARE_TEST(every_byte_is_known) {
  struct object object;
  start_library();
  options.big_cache_bytes = 2 * GIB; /* of a range that goes back in parts less is known */
  char *block = must_malloc(GIB);
  size_t bytes = hak_malloc_usable_size(block);
  for (size_t at = 0; at < bytes; at += CHUNK_BYTES / 2 + 1) {
    REQUIRE(hak_owns(block + at));
    REQUIRE(object_find((uintptr_t)block + at, false, &object) == OBJECT_LIVE);
    REQUIRE(object.base == (uintptr_t)block && object.bytes == bytes);
  }
  REQUIRE(object_find((uintptr_t)block + 100 * CHUNK_BYTES, true, &object) == OBJECT_LIVE);
  REQUIRE(object_find((uintptr_t)block + GIB - 1, true, &object) == OBJECT_UNKNOWN); /* hurried */
  hak_free(block);
  REQUIRE(object_find((uintptr_t)block + GIB / 2, false, &object) == OBJECT_NONE);
  REQUIRE(object_find((uintptr_t)window.chunk_map_end, false, &object) == OBJECT_UNKNOWN);
}

CHILD(free_inside) {
  start_library();
  char *block = must_malloc(GIB);
  hak_free(block + GIB / 2);
}
TEST(free_inside) {
  const char *const said[] = {"misaligned free", "inside the block of", "big", NULL};
  assert_child_reports(free_inside, NULL, said);
}

/* Content follows; what cannot be cut off stays. */
BARE_TEST(resize) {
  start_library();
  char *block = must_malloc(2 * GIB);
  void *wall = must_malloc(3 << 20);
  block[0] = 1;
  block[GIB / 2] = 2;
  refuse_records(true);
  REQUIRE(hak_realloc(block, GIB) == block && hak_malloc_usable_size(block) >= 2 * GIB);
  REQUIRE(load_relaxed(&totals.big_live_bytes) ==
          hak_malloc_usable_size(block) + hak_malloc_usable_size(wall));
  refuse_records(false);
  REQUIRE(hak_realloc(block, GIB) == block && hak_malloc_usable_size(block) < 2 * GIB);
  REQUIRE(hak_realloc(block, 3 * GIB / 2) == block && block[GIB / 2] == 2);
  block = hak_realloc(block, 4 * GIB);
  REQUIRE(block && block[0] == 1 && block[GIB / 2] == 2);
  block = hak_realloc(block, 5000);
  REQUIRE(block && block[0] == 1 && hak_malloc_usable_size(block) < 6000);
  hak_free(block);
  hak_free(wall);
  REQUIRE(load_relaxed(&totals.big_live_bytes) == 0);
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { LIVE_MAX = 40, STEPS = 20000, MARKS = 16 };

/* A few bytes of it, the first and the last among them. */
static unsigned char *mark_of(const struct live *live, size_t index) {
  size_t last = (live->granules << GRANULE_SHIFT) - 1;
  return bytes_of(live->granule) + last / (MARKS - 1) * index +
         (index == MARKS - 1 ? last % (MARKS - 1) : 0);
}

static void set_marks(struct live *live, unsigned char mark) {
  live->mark = mark;
  for (size_t index = 0; index < MARKS; index++) *mark_of(live, index) = mark;
}

static void check_marks(const struct live *live) {
  REQUIRE(range_info(live->granule)->granules == live->granules);
  for (size_t index = 0; index < MARKS; index++) REQUIRE(*mark_of(live, index) == live->mark);
}

/* From one granule to 64 MiB, each doubling as likely as the next. */
static size_t random_granules(uint64_t *random) {
  return 1 + random_below(random, (size_t)1 << (1 + random_below(random, 10)));
}

static struct live take_random(uint64_t *random) {
  size_t granules = random_granules(random);
  size_t alignment_granules = (size_t)1 << (random_below(random, 8) ? 0 : random_below(random, 8));
  struct live live = take_live(granules, alignment_granules, (unsigned)random_below(random, 4));
  if (range_info(live.granule)->is_zero)
    for (size_t index = 0; index < MARKS; index++) REQUIRE(*mark_of(&live, index) == 0);
  return live;
}

static void resize_random(struct live *live, uint64_t *random) {
  size_t after = random_granules(random);
  if (after > live->granules && !range_extend(live->granule, after, &counters)) return;
  if (after < live->granules) REQUIRE(range_shrink(live->granule, after, &counters));
  live->granules = after;
}

CHILD_TEST(model) {
  struct live live[LIVE_MAX];
  unsigned live_count = 0;
  uint64_t random = 20261122;
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned choice = (unsigned)random_below(&random, 100);
    struct live *which = live_count ? &live[random_below(&random, live_count)] : NULL;
    if (which) check_marks(which);
    if (choice == 0) {
      purge(random_below(&random, 4) == 0);
    } else if (choice < 20 && which) {
      resize_random(which, &random);
      set_marks(which, (unsigned char)(step % 255 + 1));
    } else if (choice < 20 + 80 * live_count / LIVE_MAX && which) {
      give(which->granule);
      *which = live[--live_count];
    } else if (live_count < LIVE_MAX) {
      live[live_count] = take_random(&random);
      set_marks(&live[live_count++], (unsigned char)(step % 255 + 1));
    }
    os_fake_advance_ms(1);
    require_laws();
  }
}
