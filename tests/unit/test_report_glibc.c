/* src/observe/report_glibc and src/cache/class_figures. */
#include "cache/heap.h"
#include "observe/report_glibc.h"

#include "heaps.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, CLASS_96 = 6, BLOCKS = 1000 };

static struct glibc_figures figures; /* too large for a stack */

/* Blocks of one slab class are all that the program has: each is live, cached or free. */
static uint64_t require(unsigned class, uint64_t live_blocks) {
  glibc_figures_take(&figures);
  REQUIRE(figures.in_use_bytes == live_blocks * class_bytes(class));
  REQUIRE(figures.cached_bytes == figures.cached_blocks * class_bytes(class));
  return figures.free_blocks + figures.cached_blocks;
}

CHILD_TEST(count_free_blocks) {
  void *blocks[BLOCKS];
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(60);
  uint64_t free_blocks = require(CLASS_64, BLOCKS);
  REQUIRE(BLOCKS + free_blocks <= GRANULE_BYTES / 64); /* of one slab */
  for (unsigned index = 0; index < BLOCKS; index += 2) hak_free(blocks[index]);
  REQUIRE(require(CLASS_64, BLOCKS / 2) == free_blocks + BLOCKS / 2);
  for (unsigned index = 1; index < BLOCKS; index += 2) hak_free(blocks[index]);
  REQUIRE(require(CLASS_64, 0) == free_blocks + BLOCKS);
}

CHILD_TEST(count_large_blocks) {
  void *one = must_malloc(100000), *other = must_malloc(90000);
  glibc_figures_take(&figures);
  REQUIRE(figures.in_use_bytes ==
          class_bytes(class_of_size(100000)) + class_bytes(class_of_size(90000)));
  hak_free(one);
  glibc_figures_take(&figures);
  REQUIRE(figures.in_use_bytes == class_bytes(class_of_size(90000)));
  hak_free(other);
  hak_purge(true);
  glibc_figures_take(&figures);
  REQUIRE(figures.in_use_bytes == 0 && figures.cached_blocks == 0);
}

static void *free_them(void *argument) {
  void **blocks = argument;
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  require(CLASS_96, 0); /* in this thread's magazine, or in their slabs */
  return NULL;
}

CHILD_TEST(count_what_another_thread_frees) {
  void *blocks[BLOCKS];
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(96);
  on_a_thread(free_them, blocks);
  require(CLASS_96, 0);
}

/* ---- class_figures --------------------------------------------------------------------------- */

static const struct class_counters *class_figures_of(unsigned class) {
  return &load_relaxed(&heap_of_thread->class_counters)[class];
}

CHILD_TEST(count_what_passes) {
  void *blocks[BLOCKS];
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(60);
  const struct class_counters *counted = class_figures_of(CLASS_64);
  uint64_t refilled = load_relaxed(&counted->refilled_blocks);
  REQUIRE(refilled >= BLOCKS + load_relaxed(&counted->flushed_blocks));
  uint64_t requests = load_relaxed(&counted->sampled_requests);
  REQUIRE(requests > 0 && requests < BLOCKS); /* only those that missed */
  REQUIRE(load_relaxed(&counted->sampled_bytes) == 60 * requests);
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  hak_purge(true);
  REQUIRE(load_relaxed(&counted->flushed_blocks) == load_relaxed(&counted->refilled_blocks));
}

CHILD_TEST(count_large_requests) {
  void *block = must_malloc(100000);
  const struct class_counters *counted = class_figures_of(class_of_size(100000));
  REQUIRE(load_relaxed(&counted->refilled_blocks) == 1);
  REQUIRE(load_relaxed(&counted->sampled_bytes) == 100000);
  hak_free(block);
  hak_purge(true);
}

static void *take_a_few(void *unused) {
  for (unsigned index = 0; index < 3; index++) hak_free(must_malloc(60));
  REQUIRE(!load_relaxed(&heap_of_thread->class_counters)); /* it costs nothing yet */
  return unused;
}

CHILD_TEST(spare_threads_of_the_starter) { on_a_thread(take_a_few, NULL); }
