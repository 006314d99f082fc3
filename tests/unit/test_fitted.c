/* Fitted classes: when one is made, what it serves, and that blocks from before keep their
 * class. */
#include "cache/fitted.h"
#include "heaps.h"

BEFORE(child) { start_library(); }
enum { MANY = 4000 };

static void *blocks[MANY];

static void take(size_t size, unsigned count) {
  for (unsigned index = 0; index < count; index++) blocks[index] = must_malloc(size);
}
static void give(unsigned count) {
  for (unsigned index = 0; index < count; index++) hak_free(blocks[index]);
}
static unsigned classes_made(void) {
  unsigned made = 0;
  for (unsigned class = FITTED_CLASS_FIRST; class < SLAB_CLASS_COUNT; class ++)
    made += class_bytes(class) != 0;
  return made;
}

CHILD_TEST(made_when_most_requests_have_a_size) {
  take(264, 500); /* 160 KiB */
  REQUIRE(!classes_made() && hak_good_size(264) == 320);
  take(264, 1000);
  REQUIRE(classes_made() == 1 && class_bytes(FITTED_CLASS_FIRST) == 272);
  REQUIRE(hak_good_size(264) == 272 && hak_good_size(257) == 272 && hak_good_size(273) == 320);
  REQUIRE(hak_good_size(256) == 256 && hak_good_size(4096) == 4096);
  REQUIRE(hak_malloc_usable_size(must_malloc(264)) == 272);
  take(4368, 100);
  REQUIRE(classes_made() == 2 && hak_good_size(4368) == 4368 && hak_good_size(4369) == 5120);
  for (unsigned index = 0; index < 2 * MANY; index++) must_malloc(index % 5 < 3 ? 1100 : 1280);
  REQUIRE(classes_made() == 3 && hak_good_size(1100) == 1104);
}

/* Sizes in turn: a batch may have a multiple of their number of blocks, so that always the same one
 * misses. */
CHILD_TEST(not_made_without_a_majority_or_a_gain) {
  for (unsigned sizes = 3; sizes <= 6; sizes++)
    for (unsigned index = 0; index < 4 * MANY; index++) {
      must_malloc(257 + index % sizes * 16 % 64);
      must_malloc(513 + index % sizes * 16);
    }
  take(300, MANY); /* 304 of 320: 5 % */
  take(120, MANY);
  take(0, MANY);
  take(9000, 400);
  REQUIRE(!classes_made());
}

CHILD_TEST(four_at_most_for_good) {
  const uint32_t sizes[] = {272, 1296, 400, 2576};
  for (unsigned index = 0; index < 4; index++) {
    REQUIRE(class_make_fitted(sizes[index]) && !class_make_fitted(sizes[index]));
    REQUIRE(class_bytes(FITTED_CLASS_FIRST + index) == sizes[index]);
  }
  REQUIRE(!class_make_fitted(528) && !class_make_fitted(1024) && classes_made() == 4);
  for (unsigned index = 0; index < 4; index++) {
    take(sizes[index], MANY);
    give(MANY);
  }
  hak_purge(true);
  for (unsigned index = 0; index < 4; index++) REQUIRE(hak_good_size(sizes[index]) == sizes[index]);
}

BARE_TEST(shapes_are_as_of_other_classes) {
  static const uint32_t sizes[] = {144, 2256, 5008, 8176};
  for (unsigned index = 0; index < 4; index++) {
    uint32_t bytes = sizes[index];
    REQUIRE(class_make_fitted(bytes));
    unsigned class = FITTED_CLASS_FIRST + index;
    const struct slab_shape *shape = &slab_shapes[class];
    REQUIRE(shape->block_bytes == bytes && shape->capacity == GRANULE_BYTES / bytes);
    for (size_t offset = 0; offset < GRANULE_BYTES; offset++) {
      bool starts = offset % bytes == 0 && offset / bytes < shape->capacity;
      REQUIRE(slab_block_starts_at(&slab_starts[class], offset) == starts);
      size_t number = slab_block_index(shape, offset);
      REQUIRE(starts ? number == offset / bytes : number >= shape->capacity);
    }
  }
}

/* A block from before keeps its class: its usable bytes, and a sized free, which fits both. */
CHILD_TEST(blocks_from_before) {
  take(264, 100);
  REQUIRE(class_make_fitted(272));
  for (unsigned index = 0; index < 100; index++)
    REQUIRE(hak_malloc_usable_size(blocks[index]) == 320);
  void *now = must_malloc(264);
  REQUIRE(hak_malloc_usable_size(now) == 272);
  REQUIRE(hak_realloc(blocks[0], 310) == blocks[0]); /* still in place */
  void *moved = hak_realloc(now, 280);
  REQUIRE(hak_malloc_usable_size(moved) == 320);
  hak_free_sized(moved, 280);
  for (unsigned index = 1; index < 100; index++) hak_free_sized(blocks[index], 264);
  hak_free_sized(must_malloc(264), 264);
}

CHILD_TEST(aligned_requests) {
  REQUIRE(class_make_fitted(272) && class_make_fitted(1296) && class_make_fitted(544));
  for (size_t alignment = 8; alignment <= 4096; alignment *= 2)
    for (size_t size = 250; size < 1300; size++) {
      void *block = hak_aligned_alloc(alignment, size);
      REQUIRE(block && (uintptr_t)block % alignment == 0 && hak_malloc_usable_size(block) >= size);
      hak_free(block);
    }
  REQUIRE(slab_class_of(530, 32) == FITTED_CLASS_FIRST + 2); /* 544 is a multiple of 32 */
  REQUIRE(class_bytes(slab_class_of(264, 64)) == 320);
  for (size_t size = 1; size < LARGE_MAX_BYTES; size++)
    REQUIRE(hak_good_size(size) >= size && hak_good_size(size) <= hak_good_size(size + 1));
  for (size_t size = 1025; size <= 1296; size++) { /* of either class, from before and from now */
    hak_free_sized(must_malloc(size), size);
    hak_free_aligned_sized(hak_aligned_alloc(32, size), 32, size);
  }
  REQUIRE(!os_fake.written_bytes);
}

CHILD_TEST(a_forked_child_has_them_and_makes_more) {
  take(264, 1500);
  REQUIRE(classes_made() == 1);
  pid_t id = fork();
  if (id == 0) {
    REQUIRE(hak_malloc_usable_size(must_malloc(264)) == 272);
    take(1100, MANY);
    _exit(classes_made() == 2 ? 0 : 1);
  }
  require_child_succeeded(id);
  REQUIRE(classes_made() == 1);
}

/* A refusal of the system costs the class, and no more. */
CHILD_TEST(tables_stay_closed) {
  os_fake_fail(1u << OS_CALL_COMMIT, 1, UINT64_MAX);
  REQUIRE(!class_make_fitted(272) && !classes_made());
  os_fake_reset();
  REQUIRE(class_make_fitted(272));
}

/* A majority costs nothing where no class can be made for it. */
CHILD_TEST(batches_are_whole_after_the_last) {
  take(520, 320);
  struct bin *bin = &heap_of_thread->owner.bins[slab_class_of(520, 1)];
  REQUIRE(bin->lead && load_relaxed(&bin->slab_count) >= SLABS_TO_FIT && !classes_made());
  bin->lead = LEAD_TO_FIT / 2;
  for (uint32_t bytes = 1040; bytes < 1104; bytes += 16) REQUIRE(class_make_fitted(bytes));
  uint64_t before = counted(COUNT_refills);
  take(520, 1000);
  REQUIRE(counted(COUNT_refills) - before < 500);
}
