/* src/cache/packing: a class that shrinks while the process grows gives up its slabs. */
#include "cache/packing.h"

#include "heaps.h"

enum { SHRINKS = 640, GROWS = 6000, BYTES = 16 << 20, FREES_A_MALLOC = 4 };

/* The oldest block goes first, as in a cache. */
static uint32_t *queue[2 * BYTES / SHRINKS];
static unsigned oldest, youngest;

static void put(void) {
  *(queue[youngest] = must_malloc(SHRINKS)) = youngest;
  youngest++;
}

static void drop(void) {
  REQUIRE(*queue[oldest] == oldest); /* nobody else has got it */
  hak_free(queue[oldest++]);
}

static struct magazine *magazine(void) {
  return &heap_of_thread->magazines[class_of_size(SHRINKS)];
}

static unsigned slabs(void) {
  return load_relaxed(&heap_of_thread->owner.bins[class_of_size(SHRINKS)].slab_count);
}

/* While another class grows. */
static void shrink(unsigned divisor) {
  start_library();
  while (youngest < BYTES / SHRINKS) put();
  while (youngest - oldest > BYTES / SHRINKS / divisor) {
    for (unsigned block = 0; block < FREES_A_MALLOC; block++) drop();
    put();
    must_malloc(GROWS);
  }
}

static void shrink_to_half(void) {
  shrink(2);
  REQUIRE(magazine_is_packing(magazine()));
}

CHILD_TEST(slabs_become_free) {
  shrink(8);
  REQUIRE(slabs() < 2 * (youngest - oldest) / slab_shapes[class_of_size(SHRINKS)].capacity);
}

CHILD_TEST(end_when_slabs_are_dense) {
  shrink_to_half();
  unsigned before = slabs();
  while (slabs() <= before) put();
  REQUIRE(!magazine_is_packing(magazine()) && !magazine_is_armed(magazine()));
}

/* A load whose slabs stay as they are: each block is replaced in turn. */
CHILD_TEST(end_when_nothing_comes_of_it) {
  shrink_to_half();
  for (unsigned turn = 0; magazine_is_packing(magazine()); turn++) {
    REQUIRE(turn < BYTES / SHRINKS);
    drop();
    put();
  }
}

CHILD_TEST(end_for_a_named_heap) {
  shrink_to_half();
  REQUIRE(hak_heap_use(hak_heap_new("heap"), NULL));
  REQUIRE(!magazine_is_packing(magazine()) && magazine_is_armed(magazine()));
  REQUIRE(hak_heap_use(NULL, NULL) && !magazine_is_armed(magazine()));
}

CHILD_TEST(emptied_as_a_whole) {
  shrink_to_half();
  while (!magazine()->passes) put();
  hak_free(hak_aligned_calloc(16, 1, SHRINKS)); /* not through the fast path */
  hak_purge(true);
  REQUIRE(!magazine_count(magazine()) && !magazine()->passes);
  while (oldest != youngest) drop();
}

/* A class with little is left alone. */
CHILD_TEST(not_for_little) {
  start_library();
  while (youngest < 200) put();
  while (oldest < 190) drop();
  for (unsigned block = 0; block < (4 << 20) / GROWS; block++) must_malloc(GROWS);
  REQUIRE(counted(COUNT_reliefs) > 0 && !magazine_is_packing(magazine()));
}
