/* src/cache/flush: a thread gives up what rests before the process grows for it. */
#include "cache/flush.h"

#include "heaps.h"

enum {
  SMALL = 32,
  LARGE = 512,
  SMALL_BLOCKS = 8 << 20 >> 5,
  LARGE_BLOCKS = 6 << 20 >> 9,
  STEP = 1021
};

static void *small[SMALL_BLOCKS], *large[LARGE_BLOCKS];

static uint64_t superslabs(void) { return load_relaxed(&totals.superslabs); }

/* Neighbours far apart, so that the magazine ends up with blocks of nearly all slabs. */
static void fill_and_free(void) {
  for (unsigned index = 0; index < SMALL_BLOCKS; index++) small[index] = must_malloc(SMALL);
  for (unsigned index = 0; index < SMALL_BLOCKS; index++)
    hak_free(small[(uint64_t)index * STEP % SMALL_BLOCKS]);
}

static unsigned cached(size_t size) {
  return magazine_count(&heap_of_thread->magazines[class_of_size(size)]);
}

/* What the magazine holds pins nearly all slabs.  Another class gets them after one SuperSlab more:
 * until then the first serves. */
CHILD_TEST(give_up_what_rests) {
  start_library();
  fill_and_free();
  uint64_t before = superslabs();
  REQUIRE(cached(SMALL) > 100);
  for (unsigned index = 0; index < LARGE_BLOCKS; index++) large[index] = must_malloc(LARGE);
  REQUIRE(cached(SMALL) == 0 && counted(COUNT_reliefs) > 0);
  REQUIRE(superslabs() <= before + 1);
}

/* A class that has served since is left alone. */
CHILD_TEST(leave_what_serves) {
  start_library();
  fill_and_free();
  uint64_t before = superslabs();
  for (unsigned index = 0; superslabs() == before; index++) {
    REQUIRE(index < SMALL_BLOCKS);
    large[index % LARGE_BLOCKS] = must_malloc(LARGE);
    while (!load_relaxed(&heap_of_thread->owner.bins[class_of_size(SMALL)].has_served))
      must_malloc(SMALL);
  }
  REQUIRE(cached(SMALL) > 0);
}
