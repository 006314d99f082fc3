/* src/heap/in_named.c and src/checked/checked.c: blocks of named heaps in hardened mode, where a
 * thread, or a fork, comes between. */
#include "checked/checked.h"
#include "hardened/live.h"
#include "hardened/wipe.h"
#include "heap/in_named.h"
#include "heaps.h"
#include "report/report.h"
#include "slab/slab.h"

enum { MANY = 3000, SIZE = 100 };

static hak_heap *start(uint64_t level) {
  os_fake.is_multi_threaded = true;
  start_hardened(level);
  return hak_heap_new("mine");
}

static char *take(hak_heap *heap, size_t size) {
  char *block = hak_heap_malloc(heap, size);
  REQUIRE(block && hak_heap_of(block) == heap && hak_malloc_usable_size(block) == size);
  return block;
}

static uint64_t live_blocks(hak_heap *heap) {
  struct hak_figures figures;
  hak_heap_figures(heap, &figures, sizeof figures);
  return figures.live_blocks;
}

static size_t block_bytes_of(const char *block) {
  return class_bytes(map_slab_class(owner_map_entry((uintptr_t)block)));
}

/* ---- overflows ------------------------------------------------------------------------------- */

/* The owner's latch is another's: the block is looked at all the same. */
REPORT_TEST(remote_free, "hakmem: overflow seen at free of 0x",
            ": written past its 100 bytes, first at offset 100 (tiny class 7, of heap \"mine\")") {
  hak_heap *heap = start(1);
  char *block = take(heap, SIZE), *whole = take(heap, SIZE);
  block[SIZE] = 0;
  named_enter(heap);
  hak_free(whole);
  hak_free(block);
}

/* All that a wiped block has is zeros, too, and yet it lives. */
REPORT_TEST(zeros_over_all, "hakmem: overflow seen at hak_heap_free_all of 0x",
            "of heap \"mine\")") {
  hak_heap *heap = start(2);
  char *block = take(heap, SIZE);
  memset(block, 0, block_bytes_of(block));
  hak_heap_free_all(heap);
}

/* Each is gone after a word, and what is taken next is untouched. */
CHILD_TEST(several_at_once) {
  hak_heap *heap = start(1);
  for (unsigned index = 0; index < MANY; index++)
    take(heap, SIZE)[SIZE] = (char)(index % 1000 == 0);
  for (unsigned round = 0; round < 2; round++) {
    misuse_action = round ? MISUSE_ABORT : MISUSE_IGNORE;
    REQUIRE(hak_heap_free_all(heap) && live_blocks(heap) == 0 && named_live_bytes(heap) == 0);
    for (unsigned index = 0; index < MANY; index++) take(heap, SIZE); /* they read as zero */
  }
  REQUIRE(hak_heap_destroy(heap));
}

/* ---- double frees ---------------------------------------------------------------------------- */

/* Another thread frees it: it has cleared the bit, and is anywhere on its way. */
static void free_halfway(char *block, bool is_wiped) {
  REQUIRE(live_end(live_word((uintptr_t)block), (uintptr_t)block, true));
  if (is_wiped) wipe_block((uintptr_t)block, block_bytes_of(block));
}

static void freed_beside(const void *is_wiped) {
  hak_heap *heap = start(1);
  char *block = take(heap, SIZE);
  block[SIZE] = 1; /* whose is not ours to say */
  free_halfway(block, is_wiped);
  hak_free(block);
}

REPORT_TEST(asked_beside, "hakmem: double malloc_usable_size of 0x") {
  hak_heap *heap = start(1);
  char *block = take(heap, SIZE);
  free_halfway(block, true);
  hak_malloc_usable_size(block);
}

/* The first has let the slab go, and the block is a thread's by now, who keeps it. */
static void freed_too_late(const void *goes_on) {
  hak_heap *heap = start(1);
  char *block = take(heap, SIZE);
  uint32_t entry = owner_map_entry((uintptr_t)block);
  hak_free(block);
  REQUIRE(hak_heap_free_all(heap) && owner_map_entry((uintptr_t)block) != entry);
  for (unsigned left = 100 * MANY; must_malloc(SIZE) != block; left--) REQUIRE(left);
  if (goes_on) misuse_action = MISUSE_IGNORE;
  heap_named_free_hardened(block, entry, MADE_BY_MALLOC);
  REQUIRE(hak_malloc_usable_size(block) == SIZE);
  hak_free(block);
}

TEST(double_frees) {
  static const char *const said[] = {"hakmem: double free of 0x", "is free already (tiny class 7",
                                     NULL};
  assert_child_reports(freed_beside, NULL, said);
  assert_child_reports(freed_beside, "wiped", said);
  assert_child_reports(freed_too_late, NULL, said);
}

CHILD_TEST(freed_too_late_is_kept) { freed_too_late(""); }

/* ---- beside ---------------------------------------------------------------------------------- */

/* A thread that looks at free blocks from beside has the first ones for a moment: others are given,
 * and they come later. */
CHILD_TEST(looked_at) {
  enum { LOOKED_AT = 5 };
  uintptr_t blocks[LOOKED_AT];
  hak_heap *heap = start(1);
  take(heap, SIZE);
  for (unsigned index = 0; index < LOOKED_AT; index++) blocks[index] = (uintptr_t)take(heap, SIZE);
  for (unsigned index = 0; index < LOOKED_AT; index++) hak_free((void *)blocks[index]);
  for (unsigned index = 0; index < LOOKED_AT; index++)
    REQUIRE(live_begin(live_word(blocks[index]), blocks[index], true));
  uintptr_t other = (uintptr_t)take(heap, SIZE);
  REQUIRE(live_blocks(heap) == 2);
  for (unsigned index = 0; index < LOOKED_AT; index++) {
    REQUIRE(other != blocks[index]);
    REQUIRE(live_end(live_word(blocks[index]), blocks[index], true));
  }
  for (unsigned index = 0; index < LOOKED_AT; index++)
    REQUIRE((uintptr_t)take(heap, SIZE) == blocks[index]);
  REQUIRE(hak_heap_destroy(heap));
}

/* Who has a heap's latch names no frames: a thread that loads a library, for which that waits, may
 * wait for the heap. */
CHILD_TEST(no_stack_under_the_latch) {
  be_hardened(1);
  start_library();
  hak_heap *heap = hak_heap_new("mine"), *other = hak_heap_new("other");
  REQUIRE(heap && other && misuse_may_walk());
  named_enter(heap);
  REQUIRE(!misuse_may_walk());
  named_leave(heap);
  REQUIRE(misuse_may_walk());
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Threads that were freeing blocks without the latch are not there any more: the heap can be
 * emptied, without a word, and its memory reads as zero. */
CHILD_TEST(left_by_a_fork) {
  char *blocks[4];
  hak_heap *heap = start(2);
  for (unsigned index = 0; index < 4; index++) blocks[index] = memset(take(heap, SIZE), 'A', SIZE);
  free_halfway(blocks[0], false);
  free_halfway(blocks[2], true);
  named_after_fork(NULL);
  REQUIRE(named_is(heap, NAMED_IN_USE) && hak_heap_free_all(heap) && live_blocks(heap) == 0);
  for (unsigned index = 0; index < MANY; index++) take(heap, SIZE);
  REQUIRE(hak_heap_destroy(heap));
  for (unsigned index = 0; index < MANY; index++) must_malloc(SIZE);
}

/* Another thread had the latch: what it was taking is nobody's, what lives is freed one by one, and
 * checked. */
REPORT_TEST(cut_off, "hakmem: overflow seen at free of 0x", "first at offset 100") {
  hak_heap *heap = start(1);
  char *block = take(heap, SIZE), *other = take(heap, SIZE);
  store_relaxed(&heap->owner.latch, 12345); /* a thread that is not here */
  named_after_fork(NULL);
  REQUIRE(named_is(heap, NAMED_CUT_OFF));
  hak_free(block);
  hak_free(take(heap, SIZE));
  REQUIRE(hak_heap_free_all(heap));
  other[SIZE] = 1;
  hak_free(other);
}
