/* src/ranges/large: blocks of 64 KiB to 1 MiB. */
#include "heaps.h"
#include "map/window.h"
#include "ranges/large.h"

BEFORE(child) { start_library(); }

/* Large blocks begin anywhere in their first page, and neighbours in different lines of it. */
CHILD_TEST(have_colours) {
  enum { BLOCKS = 32, STEP = COLOUR_STEP_BYTES };
  bool is_used[COLOUR_COUNT] = {false};
  unsigned colours = 0;
  for (unsigned index = 0; index < BLOCKS; index++) {
    uintptr_t offset = (uintptr_t)must_malloc(150 << 10) % GRANULE_BYTES;
    REQUIRE(offset < COLOUR_ROOM_BYTES && offset % STEP == 0);
    colours += !is_used[offset / STEP];
    is_used[offset / STEP] = true;
  }
  REQUIRE(colours > COLOUR_COUNT / 2);
}

/* Alignment beats colour, in magazines too. */
CHILD_TEST(align_first) {
  for (unsigned round = 0; round < 40; round++) {
    void *blocks[2] = {hak_aligned_alloc(4096, 300000), must_malloc(300000)};
    REQUIRE((uintptr_t)blocks[0] % 4096 == 0);
    hak_free(blocks[round % 2]);
    void *aligned = hak_aligned_alloc(16384, 300000);
    REQUIRE((uintptr_t)aligned % 16384 == 0);
    hak_free(aligned);
    if (round % 3) hak_free(blocks[1 - round % 2]);
  }
}

CHILD_TEST(own_whole_granules) {
  for (size_t size = MID_MAX_BYTES + 1; size <= 1 << 20; size += 9973) {
    unsigned char *block = must_malloc(size);
    REQUIRE((uintptr_t)block % GRANULE_BYTES < COLOUR_ROOM_BYTES);
    REQUIRE(hak_malloc_usable_size(block) == class_bytes(large_class_of_size(size)));
    block[0] = block[size - 1] = 1;
    hak_free(block);
  }
  hak_purge(true);
  REQUIRE(load_relaxed(&totals.large_live_bytes) == 0);
}

CHILD_TEST(find_by_site) {
  void *blocks[3];
  for (unsigned index = 0; index < 3; index++) blocks[index] = hak_malloc_site(200000, 40 + index);
  /* Straight into the shared cache: this thread's magazine is emptied. */
  for (unsigned index = 0; index < 3; index++) hak_free(blocks[index]);
  uint64_t hits = counted(COUNT_large_cache_hits);
  void *again = hak_malloc_site(200000, 41);
  REQUIRE(again == blocks[0] || again == blocks[1] || again == blocks[2]);
  REQUIRE(counted(COUNT_large_cache_hits) >= hits);
}

CHILD_TEST(read_as_zero) {
  for (unsigned round = 0; round < 3; round++) {
    unsigned char *block = hak_calloc(1, 500000);
    for (size_t at = 0; at < 500000; at += 499) REQUIRE(block[at] == 0);
    memset(block, 0xff, 500000);
    hak_free(block);
    if (round == 1) hak_purge(true);
  }
}

static void *free_it(void *block) {
  hak_free(block);
  return NULL;
}

/* Whoever frees a Large block may keep it. */
CHILD_TEST(change_threads) {
  for (unsigned round = 0; round < 50; round++) on_a_thread(free_it, must_malloc(100000));
  hak_purge(true);
  struct snapshot snapshot = look();
  REQUIRE(snapshot.large_live_bytes <= 2 * 131072); /* what an ended thread's heap may still hold */
  REQUIRE(snapshot.mapped_bytes < (uint64_t)32 << 20);
}

/* Ranges of different sizes, mostly untouched, are not cut out of each other, once that is
 * known. */
CHILD_TEST(stay_whole) {
  enum { BLOCKS = 40, ROUNDS = 40 };
  uint64_t hits = 0;
  void *blocks[BLOCKS];
  os_fake.untouched_parts = 250;
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (round == ROUNDS / 2) hits = counted(COUNT_large_range_hits);
    for (unsigned index = 0; index < BLOCKS; index++)
      blocks[index] = must_malloc((index + round) % 3 ? 100000 : 400000);
    for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  }
  REQUIRE(counted(COUNT_large_range_hits) - hits < BLOCKS);
  hak_purge(true);
  REQUIRE(load_relaxed(&totals.large_live_bytes) == 0 && look().dirty_free_bytes == 0);
}

/* What touches just the ends of its blocks gets those again that ended there. */
CHILD_TEST(end_where_they_did) {
  enum { BYTES = 300000, ELSEWHERE = 310000 };
  os_fake.untouched_parts = 250;
  for (unsigned round = 0; round < 200; round++) {
    void *blocks[20];
    for (unsigned index = 0; index < 20; index++) blocks[index] = must_malloc(BYTES);
    for (unsigned index = 0; index < 20; index++) hak_free(blocks[index]);
  }
  REQUIRE(large_class_of_size(BYTES) == large_class_of_size(ELSEWHERE));
  void *block = must_malloc(BYTES);
  hak_free(block);
  uint64_t mapped_bytes = look().mapped_bytes;
  void *other = must_malloc(ELSEWHERE);
  REQUIRE(other != block && must_malloc(BYTES) == block);
  REQUIRE(look().mapped_bytes - mapped_bytes <= CHUNK_BYTES);
  hak_free(other);
  REQUIRE(must_malloc(ELSEWHERE) == other);
}
