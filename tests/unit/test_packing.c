/* src/cache/packing: a class that shrinks while the process grows gives up its slabs. */
#include "cache/packing.h"

#include "heaps.h"

enum { SHRINKS = 640, GROWS = 1500, BLOCKS = 16 << 20, FREES_A_MALLOC = 4 };

/* The oldest block goes first, as in a cache. */
static uint32_t *queue[2 * BLOCKS / SHRINKS];
static unsigned oldest, youngest;

static void put(void) {
  queue[youngest] = must_malloc(SHRINKS);
  *queue[youngest] = youngest;
  youngest++;
}

static void drop(void) {
  REQUIRE(*queue[oldest] == oldest); /* nobody else has got it */
  hak_free(queue[oldest++]);
}

static unsigned class_that_shrinks(void) { return class_of_size(SHRINKS); }

static struct magazine *magazine(void) { return &heap_of_thread->magazines[class_that_shrinks()]; }

static unsigned slabs(void) {
  return load_relaxed(&heap_of_thread->owner.bins[class_that_shrinks()].slab_count);
}

/* Down to an eighth, while another class grows. */
static void shrink(void) {
  while (youngest < BLOCKS / SHRINKS) put();
  while (youngest - oldest > BLOCKS / SHRINKS / 8) {
    for (unsigned block = 0; block < FREES_A_MALLOC; block++) drop();
    put();
    for (unsigned block = 0; block < FREES_A_MALLOC; block++) must_malloc(GROWS);
  }
}

CHILD_TEST(slabs_become_free) {
  start_library();
  shrink();
  unsigned needed = (youngest - oldest) / slab_shapes[class_that_shrinks()].capacity;
  REQUIRE(magazine_is_packing(magazine()) && slabs() < 2 * needed);
}

CHILD_TEST(end_when_slabs_are_dense) {
  start_library();
  shrink();
  unsigned before = slabs();
  while (slabs() <= before) put();
  REQUIRE(!magazine_is_packing(magazine()) && !magazine_is_armed(magazine()));
  while (oldest != youngest) drop();
}

/* A load whose slabs stay as they are: each block is replaced in turn. */
CHILD_TEST(end_when_nothing_comes_of_it) {
  start_library();
  shrink();
  for (unsigned turn = 0; magazine_is_packing(magazine()); turn++) {
    REQUIRE(turn < BLOCKS / SHRINKS);
    drop();
    put();
  }
}

CHILD_TEST(end_for_a_named_heap) {
  start_library();
  shrink();
  hak_heap *heap = hak_heap_new("heap");
  REQUIRE(hak_heap_use(heap, NULL));
  REQUIRE(!magazine_is_packing(magazine()) && magazine_is_armed(magazine()));
  REQUIRE(hak_heap_use(NULL, NULL));
  REQUIRE(!magazine_is_armed(magazine()));
  while (oldest != youngest) drop();
}

CHILD_TEST(emptied_as_a_whole) {
  start_library();
  shrink();
  put();
  REQUIRE(magazine()->passes);
  hak_purge(true);
  REQUIRE(!magazine_count(magazine()) && !magazine()->passes);
  put();
  while (oldest != youngest) drop();
}

/* A class with little is left alone. */
CHILD_TEST(not_for_little) {
  start_library();
  while (youngest < 200) put();
  while (oldest < 190) drop();
  for (unsigned block = 0; block < 4 << 20 >> 10; block++) must_malloc(GROWS);
  REQUIRE(counted(COUNT_reliefs) > 0 && !magazine_is_packing(magazine()));
}
