/* src/named: records, slabs and ranges of heaps that the program makes; and src/heap/in_named.c,
 * what it does with them. */
#include "named/named_heap.h"
#include "named/named_samples.h"

#include "heap/in_named.h"
#include "heaps.h"
#include "ranges/range.h"
#include "slab/slab.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, MANY = 5000 };

static void *blocks[MANY];

static struct hak_heap *make(const char *name) {
  struct hak_heap *heap = hak_heap_new(name);
  REQUIRE(heap && named_is(heap, NAMED_IN_USE));
  REQUIRE(named_live_bytes(heap) == 0 && !heap->first_range);
  return heap;
}

static void *take(struct hak_heap *heap, size_t size) {
  void *block = hak_heap_malloc(heap, size);
  uint32_t entry = owner_map_entry((uintptr_t)block);
  REQUIRE(block && map_entry_is_named(entry) && named_of_entry(entry) == heap);
  return block;
}

static uint64_t slabs_of(const struct hak_heap *heap) {
  uint64_t slabs = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    slabs += load_relaxed(&heap->owner.bins[class].slab_count);
  return slabs;
}

/* ---- records --------------------------------------------------------------------------------- */

/* Numbers beyond the first rows of the directory; records are used again. */
CHILD_TEST(records) {
  static struct hak_heap *heaps[MANY];
  for (unsigned index = 0; index < MANY; index++) {
    heaps[index] = make(NULL);
    REQUIRE(heaps[index]->owner.number == index + 1);
    REQUIRE(named_of_entry(map_entry(heaps[index]->owner.tag, CLASS_64)) == heaps[index]);
  }
  unsigned seen = 0;
  for (uint32_t number = 0; named_next(&number);) seen++;
  REQUIRE(seen == MANY);
  for (unsigned index = 0; index < MANY; index++) REQUIRE(hak_heap_destroy(heaps[index]));
  for (unsigned index = 0; index < MANY; index++) REQUIRE(make("again")->owner.number <= MANY);
  REQUIRE(make(NULL)->owner.number == MANY + 1);
}

/* Pages of records that are not used go back, and a late look finds no heap; they are counted again
 * when heaps need them. */
CHILD_TEST(records_go_back) {
  static struct hak_heap *heaps[MANY];
  hak_free(take(make("first"), 64));
  uint64_t before = look().metadata_bytes;
  for (unsigned index = 0; index < MANY; index++) heaps[index] = make("many");
  take(heaps[MANY - 1], 64);
  uint64_t most = look().metadata_bytes, slabs = counted(COUNT_refill_new);
  for (unsigned index = 0; index < MANY; index++)
    if (index != MANY / 2) REQUIRE(hak_heap_destroy(heaps[index]));
  hak_purge(true);
  REQUIRE(look().metadata_bytes - before < (most - before) / 10);
  REQUIRE(counted(COUNT_refill_new) == slabs);
  unsigned seen = 0;
  for (uint32_t number = 0; named_next(&number);) seen++;
  REQUIRE(seen == 2 && named_is(heaps[MANY / 2], NAMED_IN_USE));
  REQUIRE(named_is(heaps[MANY - 1], NAMED_UNUSED));
  REQUIRE(!strcmp(heaps[MANY / 2]->name, "many"));
  for (unsigned index = 1; index < MANY; index++) make("again");
  REQUIRE(look().metadata_bytes == most);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* No heap adopts its slabs, and it takes none with others' blocks: after its end all of them are
 * free. */
CHILD_TEST(apart) {
  struct hak_heap *heap = make("apart");
  void *others[MANY];
  for (unsigned index = 0; index < MANY; index++) {
    blocks[index] = take(heap, 64);
    others[index] = must_malloc(64);
    if (index % 2) hak_free(others[index]);
  }
  for (unsigned index = 0; index < MANY; index += 2) hak_free(blocks[index]);
  for (unsigned index = 0; index < MANY; index++) /* by threads' heaps, in reused blocks */
    REQUIRE(!map_entry_is_named(owner_map_entry((uintptr_t)must_malloc(64))));
  REQUIRE(slabs_of(heap) >= MANY / slab_shapes[CLASS_64].capacity);
  REQUIRE(hak_heap_free_all(heap));
  REQUIRE(slabs_of(heap) == 0 && named_live_bytes(heap) == 0);
}

CHILD_TEST(live_bytes_are_right) {
  uint64_t random = 3, bytes = 0, ranges = 0;
  size_t sizes[MANY / 10] = {0};
  struct hak_heap *heap = make("counted");
  for (unsigned round = 0; round < 20000; round++) {
    size_t at = random_below(&random, MANY / 10);
    if (blocks[at]) {
      bytes -= sizes[at];
      ranges -= sizes[at] > MID_MAX_BYTES;
      hak_free(blocks[at]);
      blocks[at] = NULL;
    } else {
      blocks[at] = take(heap, random_below(&random, round % 100 ? 3000 : 3000000));
      sizes[at] = hak_malloc_usable_size(blocks[at]);
      if (sizes[at] > MID_MAX_BYTES) /* a range counts whole */
        sizes[at] = size_of_granules(range_info(granule_of((uintptr_t)blocks[at]))->granules);
      bytes += sizes[at];
      ranges += sizes[at] > MID_MAX_BYTES;
    }
    REQUIRE(named_live_bytes(heap) == bytes && load_relaxed(&heap->range_blocks) == ranges);
  }
}

/* Frees that find the latch taken go home by the queue. */
CHILD_TEST(free_while_taken) {
  struct hak_heap *heap = make("busy");
  for (unsigned index = 0; index < MANY; index++) blocks[index] = take(heap, 64);
  uint64_t live = named_live_bytes(heap);
  named_enter(heap);
  for (unsigned index = 0; index < MANY; index++) hak_free(blocks[index]);
  REQUIRE(named_live_bytes(heap) == live && load_relaxed(&heap->freed_remotely) == MANY);
  named_leave(heap);
  named_collect(heap);
  REQUIRE(named_live_bytes(heap) == 0);
  uint64_t slabs = slabs_of(heap);
  for (unsigned index = 0; index < MANY; index++) take(heap, 64);
  REQUIRE(slabs_of(heap) <= slabs + (uint64_t)MANY / slab_shapes[CLASS_64].capacity + 1);
}

/* Idle memory of the heap goes back to the system, and the heap goes on. */
CHILD_TEST(sweep) {
  struct hak_heap *heap = make("swept");
  for (unsigned index = 0; index < MANY; index++) blocks[index] = take(heap, 1024);
  for (unsigned index = 0; index < MANY; index++)
    if (index % 1000) hak_free(blocks[index]);
  hak_purge(true);
  REQUIRE(slabs_of(heap) <= 5);
  for (unsigned index = 0; index < MANY; index += 1000) {
    REQUIRE(hak_heap_of(blocks[index]) == heap);
    hak_free(blocks[index]);
  }
  take(heap, 1024);
}

/* Without memory for a heap, for a block, for the list of slabs: nothing is half done. */
CHILD_TEST(without_memory) {
  struct hak_heap *heap = make("poor");
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  unsigned taken = 0;
  while (hak_heap_malloc(heap, 1024)) taken++;
  REQUIRE(errno == ENOMEM && !hak_heap_malloc(heap, 3000000));
  os_fake_fail_none();
  REQUIRE(hak_heap_malloc(heap, 1024) && hak_heap_malloc(heap, 3000000));
  REQUIRE(load_relaxed(&heap->allocated_blocks) == taken + 2u);
  REQUIRE(hak_heap_destroy(heap));
}

/* ---- lanes ----------------------------------------------------------------------------------- */

enum { ANOTHER = 12345 }; /* a thread that is not here */

/* The block of a thread that meets another at the latch: it lies apart, and is the heap's in every
 * other way. */
static struct hak_heap *take_beside(struct hak_heap *heap, void **block) {
  store_relaxed(&heap->owner.latch, ANOTHER);
  *block = hak_heap_malloc(heap, 64);
  store_relaxed(&heap->owner.latch, LATCH_FREE);
  struct hak_heap *lane = named_of_entry(owner_map_entry((uintptr_t)*block));
  REQUIRE(lane && lane != heap && named_is(lane, NAMED_LANE) && hak_heap_of(*block) == heap);
  return lane;
}

CHILD_TEST(lanes) {
  struct hak_heap *heap = make("met");
  void *first = take(heap, 64), *second;
  struct hak_heap *lane = take_beside(heap, &second);
  void *third = hak_heap_malloc(heap, 64);
  REQUIRE(named_of_entry(owner_map_entry((uintptr_t)third)) == lane);
  struct hak_figures figures = figures_of(heap);
  REQUIRE(figures.live_blocks == 3 && figures.allocations == 3);
  REQUIRE(figures.live_bytes == 3 * 64 && figures.peak_bytes == 3 * 64);
  hak_free(second);
  REQUIRE(figures_of(heap).live_bytes == 2 * 64 && figures_of(heap).peak_bytes == 3 * 64);
  /* The limit is that of all, and what is taken under it is the heap's own. */
  REQUIRE(hak_set_limit(heap, 3 * 64) && take(heap, 64) && !hak_heap_malloc(heap, 64));
  hak_free(third);
  REQUIRE(take(heap, 64) && !hak_heap_malloc(heap, 64) && figures_of(heap).refusals == 2);
  third = hak_realloc(first, 32);
  REQUIRE(third && hak_set_limit(heap, 0));
  for (unsigned index = 0; index < MANY; index++) REQUIRE(hak_heap_malloc(heap, 64));
  REQUIRE(slabs_of(lane) && hak_heap_free_all(heap) && !slabs_of(lane) && !slabs_of(heap));
  REQUIRE(figures_of(heap).live_bytes == 0 && figures_of(heap).live_blocks == 0);
  REQUIRE(hak_heap_destroy(heap) && named_is(lane, NAMED_UNUSED));
  uint32_t number = 0;
  REQUIRE(!named_next(&number));
}

/* A lane takes over what the heap has of the class, and a thread that has read before whose the
 * block is frees it all the same. */
CHILD_TEST(lanes_go_on_with_the_heaps_slabs) {
  struct hak_heap *heap = make("met");
  for (unsigned index = 0; index < MANY; index++) blocks[index] = take(heap, 64);
  for (unsigned index = 0; index < MANY; index += 2) hak_free(blocks[index]);
  uint64_t slabs = slabs_of(heap);
  void *block;
  struct hak_heap *lane = take_beside(heap, &block);
  for (unsigned index = 2; index < MANY; index += 2) blocks[index] = hak_heap_malloc(heap, 64);
  REQUIRE(slabs_of(heap) <= 2 && slabs_of(heap) + slabs_of(lane) <= slabs + 1);
  unsigned moved = 1;
  while (named_of_entry(owner_map_entry((uintptr_t)blocks[moved])) != lane) moved += 2;
  heap_named_free_slab(blocks[moved], map_entry(heap->owner.tag, CLASS_64), MADE_BY_MALLOC);
  REQUIRE(figures_of(heap).live_blocks == MANY - 1);
  REQUIRE(figures_of(heap).live_bytes == 64 * (MANY - 1));
  REQUIRE(hak_heap_free_all(heap) && !slabs_of(heap) && !slabs_of(lane));
}

/* Threads that meet at a lane's latch as well wait for it; a free does not. */
CHILD_TEST(freed_while_lane_is_taken) {
  struct hak_heap *heap = make("met");
  void *block;
  struct hak_heap *lane = take_beside(heap, &block);
  named_enter(lane);
  hak_free(block);
  named_leave(lane);
  REQUIRE(load_relaxed(&lane->freed_remotely) == 1 && figures_of(heap).live_blocks == 0);
  REQUIRE(figures_of(heap).live_bytes == 0 && hak_heap_destroy(heap));
}

/* A lane that another thread was changing is left as it is, and so is the heap. */
CHILD_TEST(cut_off_lane) {
  struct hak_heap *heap = make("met");
  void *block = take(heap, 64), *second;
  struct hak_heap *lane = take_beside(heap, &second);
  store_relaxed(&lane->owner.latch, ANOTHER);
  named_after_fork(NULL);
  REQUIRE(named_is(lane, NAMED_CUT_OFF) && named_is(heap, NAMED_CUT_OFF));
  void *third = hak_heap_malloc(heap, 64);
  REQUIRE(third && hak_heap_of(third) == heap && hak_heap_of(second) == heap);
  hak_free(block);
  hak_free(second);
  REQUIRE(hak_heap_free_all(heap) && figures_of(heap).live_blocks == 0);
  REQUIRE(hak_heap_destroy(heap));
}

/* ---- fork ------------------------------------------------------------------------------------ */

static struct hak_heap *part_of(void *block) {
  return named_of_live_entry(owner_map_entry((uintptr_t)block));
}

/* That of samples: the child's next one lies in another heap, and nobody sees either. */
CHILD_TEST(cut_off_samples) {
  void *block = named_samples_take(CLASS_64);
  struct hak_heap *heap = part_of(block);
  store_relaxed(&heap->owner.latch, 12345); /* a thread that is not here */
  named_after_fork(NULL);
  void *other = named_samples_take(CLASS_64);
  REQUIRE(other && part_of(other) != heap && named_is(part_of(other), NAMED_OF_SAMPLES));
  REQUIRE(!named_is(heap, NAMED_CUT_OFF) && !hak_heap_of(block) && !hak_heap_of(other));
  hak_free(block);
  hak_free(other);
  REQUIRE(load_relaxed(&heap->freed_remotely) == 1 && !part_of(other)->owner.bytes_out);
}

/* Another thread had the latch: the heap is left as it is, its blocks live and die one by one, and
 * another stands for it. */
CHILD_TEST(cut_off) {
  struct hak_heap *heap = make("cut off");
  void *block = take(heap, 64), *range = take(heap, 200000), *last = take(heap, 200000);
  hak_heap_set_tag(heap, 5);
  store_relaxed(&heap->owner.latch, 12345); /* a thread that is not here */
  named_after_fork(NULL);
  REQUIRE(named_is(heap, NAMED_CUT_OFF));
  void *other = hak_heap_malloc(heap, 64), *large = hak_heap_malloc(heap, 200000);
  REQUIRE(other && large && hak_heap_of(other) == heap && hak_heap_of(block) == heap);
  struct hak_heap *successor = named_resolve(heap);
  REQUIRE(successor != heap && load_relaxed(&successor->tag) == 5);
  hak_free(block);
  hak_free(range);
  hak_free(other);
  block = hak_realloc(last, 400000);
  REQUIRE(block && hak_heap_of(block) == heap);
  REQUIRE(hak_heap_free_all(heap) && named_live_bytes(successor) == 0);
  REQUIRE(hak_heap_destroy(heap));
}

REPORT_TEST(use_after_destroy, "hakmem: invalid hak_heap_malloc of 0x",
            ": the heap was destroyed") {
  struct hak_heap *heap = make("gone");
  REQUIRE(hak_heap_destroy(heap));
  hak_heap_malloc(heap, 1);
}
