/* src/named, src/api/heaps.c: where two things meet: resizes with the peak and with a profile, a
 * limit with realloc, a fork with a fork, a free with another thread's of the same block, realloc
 * with what is no block. */
#include "heap/in_named.h"
#include "named/named_ranges.h"
#include "profiles.h"
#include "ranges/large.h"
#include "report/report.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, MANY = 5000, MIDDLE = 200000, LARGER = 400000 };

static void *grow_in_place(hak_heap *heap) {
  void *block = hak_heap_malloc(heap, MIDDLE);
  REQUIRE(block && hak_realloc(block, LARGER) == block);
  return block;
}

CHILD_TEST(peak_of_resized) {
  hak_heap *heap = hak_heap_new("grows");
  void *block = grow_in_place(heap);
  struct hak_figures figures = figures_of(heap);
  REQUIRE(figures.live_bytes >= LARGER && figures.peak_bytes == figures.live_bytes);
  REQUIRE(hak_realloc(block, MIDDLE) == block);
  REQUIRE(figures_of(heap).live_bytes < figures.live_bytes);
  REQUIRE(figures_of(heap).peak_bytes == figures.peak_bytes);
}

/* Numbers of granules that do not fit 32 bits, beside a slab of each class. */
CHILD_TEST(refuse_what_wraps) {
  hak_heap *heap = hak_heap_new("refuses");
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    if (class_bytes(class)) REQUIRE(hak_heap_malloc(heap, class_bytes(class)));
  for (unsigned granules = 0; granules < CLASS_COUNT; granules++)
    REQUIRE(!hak_heap_malloc(heap, ((size_t)1 << 48) - granules * GRANULE_BYTES));
}

/* All of a named heap's ranges are Big ones, whatever their size. */
CHILD_TEST(profile_of_resized) {
  hak_heap *heap = hak_heap_new("profiled");
  switch_on(1);
  void *block = grow_in_place(heap);
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++)
    REQUIRE(profiled(class) == 0);
  REQUIRE(counted(COUNT_profiled_big_blocks) == 2 && estimate_live(0).samples == 1);
  REQUIRE(estimate_live(0).bytes == (double)figures_of(heap).live_bytes);
  hak_free(block);
  REQUIRE(estimate_live(0).samples == 0);
}

/* Hardened mode rounds up to 16 bytes at least. */
BARE_TEST(profile_of_hardened) {
  options.harden = 1;
  start_library();
  hak_heap *heap = hak_heap_new("hardened");
  switch_on(1);
  for (unsigned index = 0; index < MANY; index++) REQUIRE(hak_heap_malloc(heap, 1));
  unsigned samples = estimate_live(0).samples;
  REQUIRE(samples && estimate_live(figures_of(heap).live_bytes / MANY).samples == samples);
  REQUIRE(hak_heap_free_all(heap) && estimate_live(0).samples == 0);
}

CHILD_TEST(refused_once) {
  hak_heap *heap = hak_heap_new("limited");
  REQUIRE(hak_set_limit(heap, 900000));
  void *block = hak_heap_malloc(heap, MIDDLE), *small = hak_heap_malloc(heap, 100);
  REQUIRE(block && small);
  REQUIRE(!hak_realloc(block, 1000000) && figures_of(heap).refusals == 1);
  REQUIRE(!hak_heap_malloc(heap, 1000000) && figures_of(heap).refusals == 2);
  REQUIRE(!hak_realloc(small, 2000000) && figures_of(heap).refusals == 3);
  REQUIRE(!hak_realloc(block, 3000000) && figures_of(heap).refusals == 4);
}

static void cut_off(struct hak_heap *heap) {
  store_relaxed(&heap->owner.latch, 12345); /* a thread that is not here */
  named_after_fork(NULL);
  REQUIRE(named_is(heap, NAMED_CUT_OFF));
}

/* In a child's child, what stood for the heap in the child is left as it is as well. */
CHILD_TEST(cut_off_twice) {
  hak_heap *heap = hak_heap_new("cut off twice");
  void *first = hak_heap_malloc(heap, 64);
  cut_off(heap);
  void *second = hak_heap_malloc(heap, 64);
  struct hak_heap *successor = named_resolve(heap);
  REQUIRE(successor != heap && named_of_entry(owner_map_entry((uintptr_t)second)) == successor);
  cut_off(successor);
  void *third = hak_heap_malloc(heap, 64);
  REQUIRE(third && hak_heap_of(third) == heap && named_resolve(heap) != successor);
  REQUIRE(hak_heap_destroy(heap));
  REQUIRE(named_is(successor, NAMED_UNUSED) && hak_heap_new("other") != successor);
  hak_free(first);
  hak_free(second);
}

/* Of two threads that free a block the first has let the slab go, and it is a thread's heap's by
 * now. */
REPORT_TEST(freed_too_late, "hakmem: double free of 0x") {
  hak_heap *heap = hak_heap_new("early");
  void *block = hak_heap_malloc(heap, 64);
  uint32_t entry = owner_map_entry((uintptr_t)block);
  hak_free(block);
  REQUIRE(hak_heap_free_all(heap) && owner_map_entry((uintptr_t)block) != entry);
  for (unsigned left = MANY; must_malloc(64) != block; left--) REQUIRE(left);
  heap_named_free_slab(block, entry, MADE_BY_MALLOC);
}

/* A block that another thread frees while it changes hands, as it was its own before, is not the
 * heap's, and its lists stay whole. */
CHILD_TEST(freed_between) {
  struct hak_heap *heap = hak_heap_new("whole");
  void *own = hak_heap_malloc(heap, MIDDLE), *freed = must_malloc((size_t)3 << 20);
  uint32_t first_range = heap->first_range;
  hak_free(freed);
  REQUIRE(!named_ranges_add(heap, (uintptr_t)freed) && heap->first_range == first_range);
  uint64_t live_bytes = named_live_bytes(heap);
  REQUIRE(!large_give((uintptr_t)own, heap_counters(heap_of_thread)) && hak_heap_of(own) == heap);
  hak_free(own);
  REQUIRE(!named_ranges_resize(heap, (uintptr_t)own, LARGER, heap_counters(heap_of_thread)));
  REQUIRE(live_bytes && named_live_bytes(heap) == 0 && hak_heap_destroy(heap));
}

/* Said in every case, and in the figures nothing is left. */
CHILD_TEST(freed_twice_beside) {
  struct hak_heap *heap = hak_heap_new("busy");
  void *first = hak_heap_malloc(heap, 64), *second = hak_heap_malloc(heap, 64);
  misuse_action = MISUSE_IGNORE;
  hak_free(first);
  named_enter(heap);
  hak_free(first);
  hak_free(second);
  hak_free(second);
  named_leave(heap);
  REQUIRE(figures_of(heap).live_bytes == 0 && figures_of(heap).live_blocks == 0);
  REQUIRE(load_relaxed(&heap->freed_remotely) == 2); /* that it was free is found by who collects */
}

CHILD_TEST(realloc_of_no_block) {
  hak_heap *heap = hak_heap_new("careful");
  char *block = must_malloc(64);
  misuse_action = MISUSE_WARN;
  errno = 0;
  REQUIRE(!hak_heap_realloc(heap, block + 8, 100) && errno == EINVAL);
  REQUIRE(figures_of(heap).allocations == 0);
  hak_free(block);
}
