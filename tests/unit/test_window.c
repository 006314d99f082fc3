/* src/map/window and src/map/metadata: the address window and hakmem's own memory. */
#include "map/window.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "base/counters.h"
#include "child.h"
#include "fake/os_fake.h"
#include "map/metadata.h"

#define GIB ((uint64_t)1 << 30)

static size_t grow(size_t count, size_t guard_count) {
  return window_grow((struct window_piece){count, guard_count, 0});
}

CHILD_TEST(before_it_is_placed_nothing_is_ours) {
  int on_the_stack;
  REQUIRE(!is_in_window((uintptr_t)&on_the_stack));
  REQUIRE(owner_map_entry((uintptr_t)&on_the_stack) == 0);
  REQUIRE(owner_map_entry(0) == 0);
  REQUIRE(grow(1, 0) == NO_CHUNK);
}

CHILD(place) {
  REQUIRE(window_init(64 * GIB));
  REQUIRE(window.base % CHUNK_BYTES == 0);
  REQUIRE(window.chunk_limit == 64 * GIB / CHUNK_BYTES);
  REQUIRE(is_in_window(window.base) && !is_in_window(window.base - 1));
  REQUIRE(is_in_window(window.base + 64 * GIB - 1) && !is_in_window(window.base + 64 * GIB));
  REQUIRE(load_relaxed(&window.granule_count) == 0); /* nothing is committed before it is used */
}

TEST(placing) { assert_child_succeeds(place, NULL); }

CHILD_TEST(a_place_that_others_took_is_left) {
  os_fake.random = 1;
  REQUIRE(window_init(64 * GIB));
  store_relaxed(&os_fake.occupied_places, 4); /* of the first chunk */
  REQUIRE(grow(1, 0) == 0);
  REQUIRE(os_fake.random == 6);                     /* the fifth draw */
  memset((void *)chunk_address(0), 1, CHUNK_BYTES); /* it is there */
}

/* A draw that ends at an occupied place is no verdict: until a chunk exists the next attempt draws
 * again. */
CHILD_TEST(draw_again) {
  REQUIRE(window_init(64 * GIB));
  uintptr_t drawn = window.base;
  store_relaxed(&os_fake.occupied_places, 100); /* more than one attempt draws */
  REQUIRE(grow(1, 0) != NO_CHUNK && window.base != drawn);
  drawn = window.base;
  store_relaxed(&os_fake.occupied_places, 1);
  REQUIRE(grow(1, 0) != NO_CHUNK && window.base == drawn); /* from then on it stays */
}

CHILD_TEST(a_refusal_shrinks_its_maps) {
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, 3);
  REQUIRE(window_init(64 * GIB));
  REQUIRE(window.chunk_limit == 64 * GIB / CHUNK_BYTES);
  REQUIRE(load_relaxed(&os_fake.address_bytes) <= 32 << 10); /* 136 KiB, halved three times */
  REQUIRE(grow(2000, 0) == 0);                               /* they are extended as it grows */
  owner_map_set((size_t)2000 * GRANULES_PER_CHUNK - 1, 7);
  REQUIRE(owner_map_entry(chunk_address(2000) - 1) == 7);
}

CHILD_TEST(not_even_the_smallest_fits) {
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, UINT64_MAX);
  REQUIRE(!window_init(64 * GIB));
}

CHILD_TEST(growing) {
  REQUIRE(window_init(GIB));
  size_t first = grow(1, 0), next = grow(3, 0);
  REQUIRE(first == 0 && next == 1 && grow(1, 0) == 4);
  memset((void *)chunk_address(next), 1, 3 * CHUNK_BYTES); /* it is there */
  REQUIRE(owner_map_entry(chunk_address(2)) == 0);
  size_t granule = granule_of(chunk_address(2) + GRANULE_BYTES);
  owner_map_set(granule, 0x1234);
  REQUIRE(owner_map_entry(chunk_address(2) + GRANULE_BYTES) == 0x1234);
  REQUIRE(owner_map_entry(chunk_address(2) + 2 * GRANULE_BYTES - 1) == 0x1234);
  REQUIRE(owner_map_entry(chunk_address(2) + 2 * GRANULE_BYTES) == 0);
  owner_map_clear(granule, 1);
  REQUIRE(owner_map_entry(chunk_address(2) + GRANULE_BYTES) == 0);
}

CHILD_TEST(growing_when_refused) {
  REQUIRE(window_init(64 * GIB));
  REQUIRE(grow(1, 0) == 0);
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, 1);
  REQUIRE(grow(2, 0) == NO_CHUNK);
  REQUIRE(grow(2, 0) == 1); /* the addresses were put back */
  store_relaxed(&os_fake.occupied_places, 2);
  REQUIRE(grow(1, 0) == 7); /* past a foreign mapping, with a step as wide */
  os_fake_fail(1u << OS_CALL_COMMIT, 1, 1);
  REQUIRE(grow(2000, 0) == NO_CHUNK);
  REQUIRE(grow(2000, 0) == 8);
}

CHILD_TEST(it_has_an_end) {
  REQUIRE(window_init(64 << 20));
  for (size_t chunk = 0; chunk < 32; chunk++) REQUIRE(grow(1, 0) == chunk);
  REQUIRE(grow(1, 0) == NO_CHUNK);
  REQUIRE(grow(SIZE_MAX, 0) == NO_CHUNK);
  REQUIRE(load_relaxed(&window.granule_count) == 32 * GRANULES_PER_CHUNK);
}

CHILD_TEST(operators_have_bounds) {
  REQUIRE(window_init(64 * GIB));
  REQUIRE(grow(1, 0) == 0);
  size_t bound = load_relaxed(&window.granule_count);
  REQUIRE(bound && load_relaxed(&window.deleted_count) == bound);
  REQUIRE(load_relaxed(&window.array_bound) == TINY_MAX_BYTES + 1);
}

enum { GROWN_CHUNKS = 10000 };
static ATOMIC(bool) is_watched, has_grown;

/* As a thread that deletes meanwhile. */
static void *watch_bounds(void *raised) {
  store_release(&is_watched, true);
  while (!load_acquire(&has_grown))
    if (load_relaxed(&window.deleted_count) || load_relaxed(&window.array_bound))
      *(bool *)raised = true;
  return NULL;
}

/* There are none, however the window grows, and at no moment. */
CHILD_TEST(operators_are_diverted) {
  bool raised = false;
  pthread_t watcher;
  REQUIRE(window_init(64 * GIB));
  window_divert_operators();
  REQUIRE(pthread_create(&watcher, NULL, watch_bounds, &raised) == 0);
  while (!load_acquire(&is_watched)) sched_yield();
  for (unsigned chunk = 0; chunk < GROWN_CHUNKS; chunk++) REQUIRE(grow(1, 0) == chunk);
  store_release(&has_grown, true);
  REQUIRE(pthread_join(watcher, NULL) == 0);
  REQUIRE(load_relaxed(&window.granule_count) >= (size_t)GROWN_CHUNKS * GRANULES_PER_CHUNK);
  REQUIRE(!raised);
}

/* ---- others in it ---------------------------------------------------------------------------- */

#define TIB (1024 * GIB)

/* A foreign mapping; ends at the next one. */
static void map_foreign(uintptr_t at, size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  REQUIRE(mmap((void *)at, bytes, PROT_NONE, flags, -1, 0) == (void *)at);
}

static void check_entries(size_t chunk) {
  size_t last = (chunk + 1) * GRANULES_PER_CHUNK - 1;
  owner_map_set(last, 0x1234);
  chunk_publish(chunk, &window);
  REQUIRE(owner_map_entry(chunk_address(chunk + 1) - 1) == 0x1234);
  REQUIRE(chunk_metadata(chunk) == &window);
  REQUIRE(is_in_window(chunk_address(chunk)));
}

#define WALLED_BYTES TIB, 16 * GIB, 128 << 20
CHILD_TESTS(pass_walls, uint64_t, window_bytes, WALLED_BYTES) {
  REQUIRE(window_init(window_bytes));
  size_t chunk = grow(3, 0) + 2;
  for (unsigned wall = 1; wall <= 4; wall++) {
    map_foreign(chunk_address(chunk + 1), wall * TIB);
    size_t behind = grow(2, 0);
    REQUIRE(behind != NO_CHUNK && chunk_address(behind) >= chunk_address(chunk + 1) + wall * TIB);
    REQUIRE(chunk_address(behind) <= chunk_address(chunk + 1) + 3 * wall * TIB);
    memset((void *)chunk_address(behind), 1, 2 * CHUNK_BYTES);
    for (size_t entry = behind; entry < behind + 2; entry++) check_entries(entry);
    /* In the wall there is nothing. */
    REQUIRE(owner_map_entry(chunk_address(chunk + 1)) == 0 && !chunk_metadata(chunk + 1));
    REQUIRE(owner_map_entry(chunk_address(behind) - 1) == 0 && !chunk_metadata(behind - 1));
    for (chunk = behind + 2; chunk < behind + 9; chunk++) {
      REQUIRE(grow(1, 0) == chunk); /* side by side again */
      check_entries(chunk);
    }
    chunk--;
  }
}

CHILD_TESTS(pass_walls_under_strict_overcommit, uint64_t, window_bytes, WALLED_BYTES) {
  os_fake.is_overcommit_strict = true;
  os_fake.commit_limit_bytes = 128 << 20; /* the maps of the walls alone would have 680 MiB */
  pass_walls_with(window_bytes);
}

/* Half of all addresses lie above any base that is drawn, or a window of any size has as much again
 * to be drawn in. */
CHILD_TEST(draw_low) {
  uintptr_t end = os_user_address_end(), highest = 0;
  const uint64_t sizes[] = {GIB, 64 * GIB, TIB};
  for (uint64_t draw = 0; draw < 60; draw++) {
    uint64_t bytes = sizes[draw % 3] < end / 16 ? sizes[draw % 3] : end / 16;
    REQUIRE(window_init(bytes));
    REQUIRE(window.base >= end / 8 && window.base + bytes <= end / 8 * 3);
    if (window.base > highest) highest = window.base;
  }
  REQUIRE(highest > end / 8 * 2);
  REQUIRE(window_init(UINT64_MAX / 4) && window.base >= end / 8);
  REQUIRE(window.base + (load_relaxed(&window.chunk_limit) << CHUNK_SHIFT) <= end / 8 * 5);
}

/* A wall that leaves a fiftieth of what is after the window: the steps become narrower again. */
CHILD_TEST(pass_a_wall_to_the_end) {
  REQUIRE(window_init(64 << 20));
  REQUIRE(grow(1, 0) == 0);
  uintptr_t end = os_user_address_end() / 8 * 7;
  end = round_down(end - (end - chunk_address(1)) / 50, CHUNK_BYTES);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  for (uintptr_t at = chunk_address(1); at < end; at += GIB) /* but where the program lies */
    (void)!mmap((void *)at, at + GIB < end ? GIB : end - at, PROT_NONE, flags, -1, 0);
  size_t chunk;
  do REQUIRE((chunk = grow(1, 0)) != NO_CHUNK);
  while (chunk_address(chunk) < end);
  check_entries(chunk);
}

/* Foreign mappings do not count for its size. */
CHILD_TEST(use_all_of_it) {
  REQUIRE(window_init(64 << 20));
  size_t seen = 0;
  for (size_t chunk = 0; chunk < 60; chunk += chunk % 7 + 1)
    map_foreign(chunk_address(chunk) + chunk * 4096, 4096), seen++;
  for (unsigned index = 0; index < 32; index++) check_entries(grow(1, 0));
  REQUIRE(grow(1, 0) == NO_CHUNK && seen > 10);
}

/* The map of owners has no place to grow: the part that it covers can be used, the rest is refused
 * without a wait. */
CHILD_TEST(maps_walled_in) {
  REQUIRE(window_init(64 << 20));
  uintptr_t map_end = (uintptr_t)window.owner_map + 32 * GRANULES_PER_CHUNK * sizeof(uint32_t);
  map_foreign(round_up(map_end, 4096), 4096);
  REQUIRE(grow(1, 0) == 0);
  map_foreign(chunk_address(1), 16 * CHUNK_BYTES);
  size_t served = 0;
  while (grow(1, 0) != NO_CHUNK) served++;
  REQUIRE(served > 0 && served < 16);
  for (unsigned attempt = 0; attempt < 1000; attempt++) REQUIRE(grow(1, 0) == NO_CHUNK);
  REQUIRE(munmap((void *)round_up(map_end, 4096), 4096) == 0);
}

/* The new part of either map may be refused: the next call tries again, for what is not there. What
 * is there stays, as the system may refuse to take it back, too. */
CHILD_TEST(maps_refused) {
  REQUIRE(window_init(64 << 20));
  REQUIRE(grow(1, 0) == 0);
  map_foreign(chunk_address(1), GIB);
  for (unsigned turn = 0; turn < 3; turn++) {
    uint64_t address_bytes = load_relaxed(&os_fake.address_bytes);
    bool stays = turn == 1; /* all calls but the first are refused; else the first one alone */
    uint32_t unmap = (uint32_t)stays << OS_CALL_UNMAP;
    os_fake_fail(1u << OS_CALL_RESERVE | unmap, 1 + stays, stays ? UINT64_MAX : 1);
    REQUIRE(grow(1, 0) == NO_CHUNK);
    REQUIRE((load_relaxed(&os_fake.address_bytes) == address_bytes) == !stays);
  }
  os_fake_fail(1u << OS_CALL_COMMIT, 1, 2);
  REQUIRE(grow(1, 0) == NO_CHUNK && grow(1, 0) == NO_CHUNK);
  os_fake_fail_none();
  size_t chunk = grow(1, 0);
  check_entries(chunk);
}
enum { THREADS = 8, CHUNKS_EACH = 40 };
static size_t grown[THREADS][CHUNKS_EACH];

static void *grow_beside_others(void *row) {
  for (size_t index = 0; index < CHUNKS_EACH; index++) {
    size_t chunk = grow(1, 0);
    REQUIRE(chunk != NO_CHUNK);
    memset((void *)chunk_address(chunk), 1, 4096);
    owner_map_set((chunk + 1) * GRANULES_PER_CHUNK - 1, (uint32_t)chunk + 1);
    chunk_publish(chunk, (void *)chunk);
    ((size_t *)row)[index] = chunk;
  }
  return NULL;
}

static void *ask_in_vain(void *unused) {
  for (unsigned attempt = 0; attempt < 20000; attempt++) REQUIRE(grow(1, 0) == NO_CHUNK);
  return unused;
}

/* Threads whose requests are refused at once do not use the window up. */
CHILD_TEST(refusals_take_nothing) {
  REQUIRE(window_init(64 << 20));
  REQUIRE(grow(1, 0) == 0);
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, UINT64_MAX);
  on_threads(THREADS, ask_in_vain, NULL, 0);
  os_fake_fail_none();
  for (unsigned index = 1; index < 32; index++) check_entries(grow(1, 0));
}

/* Chunks taken and not used are given back: the records of a new range are refused. */
CHILD_TEST(refused_records_take_nothing) {
  REQUIRE(window_init(64 << 20));
  for (unsigned attempt = 0; attempt < 1000; attempt++) {
    size_t chunk = grow(4, 0);
    REQUIRE(chunk == 0);
    window_give_back(chunk, (struct window_piece){4, 0, 0});
    const struct window_piece records = {1, 0, RECORD_MARGIN_BYTES};
    REQUIRE((chunk = window_grow(records)) == 0);
    window_give_back(chunk, records);
  }
}

/* Chunks that two threads take at once are guarded, too. */
static void *grow_guarded(void *row) {
  for (size_t index = 0; index < CHUNKS_EACH; index++) ((size_t *)row)[index] = grow(2, 1);
  return NULL;
}

CHILD_TEST(guards_of_threads) {
  REQUIRE(window_init(64 * GIB));
  on_threads(THREADS, grow_guarded, grown, sizeof grown[0]);
  char byte;
  for (size_t thread = 0; thread < THREADS; thread++)
    for (size_t index = 0; index < CHUNKS_EACH; index++) {
      size_t chunk = grown[thread][index];
      REQUIRE(chunk != NO_CHUNK && os_read_safely(&byte, (void *)chunk_address(chunk + 1), 1));
      REQUIRE(!os_read_safely(&byte, (void *)chunk_address(chunk + 2), 1));
    }
}

/* Threads pass walls together: the maps grow under them. What one that no longer runs has reserved
 * is no wall. */
CHILD_TEST(pass_walls_together) {
  REQUIRE(window_init(64 << 20) && grow(1, 0) == 0); /* it cannot move any more */
  os_fake.preempted_ms = 40;
  for (size_t wall = 8; wall < 4096; wall *= 2)
    map_foreign(chunk_address(wall), wall / 2 * CHUNK_BYTES);
  for (size_t page = 4; page < 512; page += 16) /* in between */
    if (!os_is_occupied((void *)chunk_address(page), CHUNK_BYTES))
      map_foreign(chunk_address(page), 4096);
  os_fake_fail(0, 1, 0);
  window.chunk_limit += THREADS * CHUNKS_EACH; /* as if it were so large; the maps are not */
  on_threads(THREADS, grow_beside_others, grown, sizeof grown[0]);
  for (size_t thread = 0; thread < THREADS; thread++)
    for (size_t index = 0; index < CHUNKS_EACH; index++) {
      size_t chunk = grown[thread][index];
      REQUIRE(owner_map_entry(chunk_address(chunk + 1) - 1) ==
              chunk + 1); /* nor another thread's */
      REQUIRE(chunk_metadata(chunk) == (void *)chunk);
      owner_map_set((chunk + 1) * GRANULES_PER_CHUNK - 1, 0);
    }
}

/* ---- records --------------------------------------------------------------------------------- */

static bool can_be_read(uintptr_t address) {
  char byte;
  return os_read_safely(&byte, (const void *)address, 1);
}

/* Nothing lies within 128 KiB of a record, on either side. */
CHILD_TEST(keep_records_apart) {
  REQUIRE(window_init(GIB));
  uintptr_t lowest = UINTPTR_MAX, highest = 0;
  REQUIRE(grow(1, 0) == 0);
  for (size_t bytes = 0; bytes + 1000 < RECORD_FIRST_BYTES; bytes += 1024) {
    uintptr_t record = (uintptr_t)metadata_allocate(1000);
    REQUIRE(granule_of(record) / GRANULES_PER_CHUNK == 1);
    if (record < lowest) lowest = record;
    if (record + 1024 > highest) highest = record + 1024;
  }
  REQUIRE(grow(1, 0) == 2);
  REQUIRE(lowest == chunk_address(1) + RECORD_FIRST_MARGIN_BYTES);
  REQUIRE(highest == chunk_address(2) - RECORD_FIRST_MARGIN_BYTES);
  for (size_t at = 0; at < RECORD_FIRST_MARGIN_BYTES; at += 4096)
    REQUIRE(!can_be_read(chunk_address(1) + at) && !can_be_read(highest + at));
  REQUIRE(can_be_read(chunk_address(1) - 1) && can_be_read(chunk_address(2)));
  uintptr_t next =
      (uintptr_t)metadata_allocate(RECORD_CHUNK_BYTES); /* the largest; the rest is lost */
  REQUIRE(next == chunk_address(3) + RECORD_MARGIN_BYTES);
  memset((void *)next, 1, RECORD_CHUNK_BYTES);
  for (size_t at = 0; at < RECORD_MARGIN_BYTES; at += 4096)
    REQUIRE(!can_be_read(chunk_address(3) + at) && !can_be_read(next + RECORD_CHUNK_BYTES + at));
  REQUIRE((uintptr_t)metadata_allocate(64) == chunk_address(4) + RECORD_MARGIN_BYTES);
}

CHILD_TEST(pass_over_for_records) {
  REQUIRE(window_init(GIB));
  map_foreign(chunk_address(0) + 3 * 4096, 4096);        /* in the margin: harmless */
  map_foreign(chunk_address(1) + CHUNK_BYTES / 2, 4096); /* among the records */
  REQUIRE((uintptr_t)metadata_allocate(64) == chunk_address(0) + RECORD_FIRST_MARGIN_BYTES);
  REQUIRE((uintptr_t)metadata_allocate(RECORD_CHUNK_BYTES) ==
          chunk_address(2) + RECORD_MARGIN_BYTES);
}

CHILD_TEST(metadata_is_zeroed_and_apart) {
  REQUIRE(window_init(GIB));
  char *before = NULL;
  for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
    for (unsigned repeat = 0; repeat < 50; repeat++) {
      char *record = metadata_allocate(bytes);
      REQUIRE((uintptr_t)record % CACHE_LINE_BYTES == 0 && record != before);
      for (size_t at = 0; at < bytes; at++) REQUIRE(record[at] == 0);
      memset(record, 0xff, bytes); /* shows where two records overlap */
      before = record;
    }
  }
}

CHILD_TEST(metadata_when_refused) {
  REQUIRE(window_init(GIB));
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, 2);
  REQUIRE(!metadata_allocate(64) && !metadata_allocate(64));
  REQUIRE(load_relaxed(&totals.metadata_bytes) == 0);
  REQUIRE(metadata_allocate(65));
  REQUIRE(load_relaxed(&totals.metadata_bytes) == 128);
}
