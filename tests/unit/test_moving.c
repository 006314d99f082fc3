/* src/cache/moving: a thread that moves blocks gets those of the densest slab, and empties others. */
#include "cache/moving.h"

#include "profiles.h"
#include "slab/slab.h"

enum { BYTES = 320, SLABS = 6 };

static unsigned class, capacity;
static void **blocks; /* SLABS * capacity, slab by slab */

static struct slab *slab_at(unsigned number) {
  return slab_of_block((uintptr_t)blocks[number * capacity]);
}
static struct bin *bin(void) { return &heap_of_thread->owner.bins[class]; }
static struct magazine *magazine(void) { return &heap_of_thread->magazines[class]; }

/* Full slabs; the last one is the current one. */
static void fill_slabs(void) {
  start_library();
  class = class_of_size(BYTES);
  capacity = slab_shapes[class].capacity;
  blocks = must_malloc(SLABS * capacity * sizeof *blocks);
  REQUIRE(hak_move_begin());
  for (unsigned at = 0; at < SLABS * capacity; at++)
    memset(blocks[at] = must_malloc(BYTES), (int)at, BYTES);
  for (unsigned at = 0; at < SLABS * capacity; at++)
    REQUIRE(slab_of_block((uintptr_t)blocks[at]) == slab_at(at / capacity));
}

static void free_some(unsigned slab, unsigned first, unsigned end) {
  for (unsigned at = first; at < end; at++) hak_free(blocks[slab * capacity + at]);
}

/* 40 blocks of slab 0 are free, 2 of slab 1, all but one of slab 2, 80 of slab 3. */
static void make_sparse(void) {
  fill_slabs();
  free_some(0, 1, 41);
  free_some(1, 1, 3);
  free_some(2, 1, capacity);
  free_some(3, 1, 81);
  REQUIRE(!magazine_count(magazine()));
}

CHILD_TEST(densest_first) {
  const unsigned order[] = {1, 0, 3, 2}, free_blocks[] = {2, 40, 80};
  make_sparse();
  for (unsigned turn = 0; turn < 4; turn++)
    for (unsigned block = 0; block < (turn < 3 ? free_blocks[turn] : capacity - 1); block++)
      REQUIRE(slab_of_block((uintptr_t)must_malloc(BYTES)) == slab_at(order[turn]));
  REQUIRE(load_relaxed(&bin()->slab_count) == SLABS);
}

CHILD_TEST(gain) {
  make_sparse();
  void *others[] = {NULL, &others, blocks, hak_heap_malloc(hak_heap_new("heap"), BYTES)};
  unsigned char answers[SLABS], none[4];
  void *firsts[SLABS];
  for (unsigned slab = 0; slab < SLABS; slab++) firsts[slab] = blocks[slab * capacity];
  REQUIRE(hak_worth_moving(firsts, SLABS, answers) == 3);
  const unsigned free_blocks[SLABS] = {40, 0, capacity - 1, 80};
  for (unsigned slab = 0; slab < SLABS; slab++)
    REQUIRE(answers[slab] == free_blocks[slab] * 100 / capacity);
  REQUIRE(hak_worth_moving(others, 4, none) == 0 && !none[0] && !none[1] && !none[2] && !none[3]);
  REQUIRE(hak_worth_moving(NULL, 0, NULL) == 0);
  must_malloc(BYTES); /* slab 1 is the current one now */
  free_some(1, 3, 40);
  REQUIRE(hak_worth_moving(&firsts[1], 1, answers) == 0);
}

CHILD_TEST(emptied_slab_goes_as_old) {
  make_sparse();
  struct slab *slab = slab_at(2);
  hak_free(blocks[2 * capacity]);
  REQUIRE(load_relaxed(&slab->state) == SLOT_EMPTY && !load_relaxed(&slab->owner));
  REQUIRE(load_relaxed(&bin()->slab_count) == SLABS - 1 && !heap_of_thread->owner.free_age_ms);
  uint64_t before = load_relaxed(&totals.purged_bytes);
  hak_purge(false);
  REQUIRE(load_relaxed(&totals.purged_bytes) - before >= GRANULE_BYTES);
}

/* More slabs than are compared at a time, and wholly free ones among them. */
CHILD_TEST(converges) {
  enum { MANY = 200 };
  fill_slabs();
  unsigned count = MANY * capacity, live = 0;
  void **many = must_malloc(count * sizeof *many);
  unsigned char *answers = must_malloc(count);
  for (unsigned at = 0; at < count; at++) many[at] = must_malloc(BYTES);
  hak_move_end();
  for (unsigned at = 0; at < count; at++) {
    unsigned slab = at / capacity;
    if (slab % 10 && at * 7919u % 100 < slab % 100)
      many[live++] = many[at];
    else
      hak_free(many[at]);
  }
  REQUIRE(hak_move_begin());
  for (unsigned at = 0; at < live; at++) *(unsigned *)many[at] = at;
  unsigned turns = 0;
  for (; hak_worth_moving(many, live, answers); turns++)
    for (unsigned at = 0; at < live; at++) {
      if (!moving_gain(many[at])) continue;
      void *moved = must_malloc(BYTES);
      memcpy(moved, many[at], BYTES);
      hak_free(many[at]);
      many[at] = moved;
    }
  REQUIRE(turns && turns <= 4);
  for (unsigned at = 0; at < live; at++) REQUIRE(*(unsigned *)many[at] == at);
  REQUIRE(load_relaxed(&bin()->slab_count) <= SLABS + live / (capacity - capacity / 30) + 2);
}

CHILD_TEST(ends) {
  make_sparse();
  REQUIRE(magazine_is_armed(magazine()) && hak_move_begin());
  hak_move_end();
  hak_move_end();
  REQUIRE(!magazine_is_armed(magazine()) && !heap_of_thread->is_moving);
  free_some(0, 41, 60);
  REQUIRE(magazine_count(magazine()) && heap_attention(heap_of_thread) == 0);
  REQUIRE(hak_move_begin());
  while (bin()->current->free_local || magazine_count(magazine())) must_malloc(BYTES);
  free_some(3, 100, 110);
  REQUIRE(!magazine_count(magazine()));
}

/* Each malloc is counted once; no lot begins. */
CHILD_TEST(beside_profile) {
  make_sparse();
  switch_on(1 << 20);
  hak_free(must_malloc(BYTES)); /* looks */
  uint64_t before = profiled(class);
  for (unsigned turn = 0; turn < 100; turn++) hak_free(must_malloc(BYTES));
  REQUIRE(profiled(class) == before + 100 && !magazine()->passes && !magazine_count(magazine()));
  hak_move_end();
  switch_off();
  hak_free(must_malloc(BYTES));
  REQUIRE(!magazine_is_armed(magazine()));
}

static void *begin_only(void *unused) {
  REQUIRE(hak_move_begin());
  hak_free(must_malloc(BYTES));
  return unused;
}
static void *find_plain(void *unused) {
  hak_free(must_malloc(BYTES));
  REQUIRE(!heap_of_thread->is_moving && !load_relaxed(&heap_of_thread->armed));
  return unused;
}
CHILD_TEST(end_of_thread) {
  start_library();
  on_a_thread(begin_only, NULL);
  on_a_thread(find_plain, NULL);
}

CHILD_TEST(without_memory) {
  start_library();
  struct heap *own = heap_of_thread;
  heap_of_thread = (struct heap *)(uintptr_t)&ended_heap;
  REQUIRE(!hak_move_begin() && errno == ENOMEM);
  hak_move_end();
  heap_of_thread = own;
}

CHILD_TEST(hardened) {
  start_hardened(1);
  void *block = must_malloc(BYTES);
  REQUIRE(hak_move_begin() && !moving_gain(block));
  hak_free(block);
  hak_free(must_malloc(BYTES));
  hak_move_end();
}
