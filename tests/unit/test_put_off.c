/* src/reclaim: what one slow path puts off the next ones do, whatever else is in the way. */
#include "cache/heap.h"
#include "heaps.h"

#define MIB ((size_t)1 << 20)

enum {
  CLASS_64 = 4,
  FREE_SLABS = 700,
  USED_SLABS = 600,
  BIG_BLOCKS = 20,
  STEPS = 100,
  STEP_MS = 300
};

static void *slab_blocks[FREE_SLABS + USED_SLABS][GRANULE_BYTES / 64];

static const struct bin *bin(void) { return &heap_of_thread->owner.bins[CLASS_64]; }

static void *free_them(void *argument) {
  (void)argument;
  const unsigned slabs = FREE_SLABS + USED_SLABS, capacity = slab_shapes[CLASS_64].capacity;
  for (unsigned slab = 0; slab < slabs; slab++)
    for (unsigned block = 0; block < (slab < FREE_SLABS ? capacity : 1); block++)
      hak_free(slab_blocks[slab][block]);
  return NULL;
}

/* A slow path of a thread that frees nothing. */
static void come_by(void) {
  os_fake_advance_ms(STEP_MS);
  must_malloc(3 * MIB);
}

/* Another thread has freed blocks in more slabs than one slow path visits, and those that it queued last are in use. */
CHILD_TEST(drain_behind_many) {
  os_fake.is_multi_threaded = true;
  options.helper_thread = 0;
  start_library();
  const unsigned slabs = FREE_SLABS + USED_SLABS, capacity = slab_shapes[CLASS_64].capacity;
  for (unsigned slab = 0; slab < slabs; slab++)
    for (unsigned block = 0; block < capacity; block++) slab_blocks[slab][block] = must_malloc(64);
  come_by();
  on_a_thread(free_them, NULL);
  for (unsigned step = 0; step < STEPS; step++) come_by();
  REQUIRE(load_relaxed(&bin()->slab_count) < USED_SLABS + 100);
  REQUIRE(!(load_relaxed(&heap_of_thread->owner.ready_mask) >> CLASS_64 & 1));
}

/* More is free than may be, and the system takes none of it: rounds come all the same. */
CHILD_TEST(go_round_beside_locked_memory) {
  options.helper_thread = 0;
  start_library();
  options.big_cache_bytes = 16 * MIB;
  os_fake_fail(1u << OS_CALL_PURGE, 1, UINT64_MAX);
  void *blocks[BIG_BLOCKS];
  for (unsigned index = 0; index < BIG_BLOCKS; index++) blocks[index] = must_malloc(3 * MIB);
  for (unsigned index = 0; index < BIG_BLOCKS; index++) hak_free(blocks[index]);
  uint64_t before = counted(COUNT_purges);
  for (unsigned step = 0; step < STEPS; step++) {
    os_fake_advance_ms(STEP_MS);
    hak_free(must_malloc(2 * MIB));
  }
  REQUIRE(look().dirty_free_bytes > 16 * MIB);
  REQUIRE(counted(COUNT_purges) - before >= STEPS / 2);
}
