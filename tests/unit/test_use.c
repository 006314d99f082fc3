/* src/heap/thread.c, heap_use: whose blocks a thread's malloc gives, in what state that leaves its
 * heap, and who counts. */
#include "heap/thread.h"

#include "cache/divert.h"
#include "profiles.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, SOME = 200 };

static uint32_t users_of(struct hak_heap *heap) { return load_relaxed(&heap->users); }

static struct hak_heap *heap_of_new_block(size_t size) {
  void *block = must_malloc(size);
  struct hak_heap *heap = hak_heap_of(block);
  hak_free(block);
  return heap;
}

static bool are_all_armed(void) {
  unsigned armed = 0;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    armed += magazine_is_armed(&heap_of_thread->magazines[class]);
  REQUIRE(armed == 0 || armed == SLAB_CLASS_COUNT);
  REQUIRE((load_relaxed(&heap_of_thread->armed) != 0) == (armed != 0) &&
          heap_is_valid(heap_of_thread));
  return armed != 0;
}

CHILD_TEST(arms) {
  struct hak_heap *heap = hak_heap_new("armed"), *other = hak_heap_new("other");
  REQUIRE(!are_all_armed() && hak_heap_use(heap, NULL) && are_all_armed());
  REQUIRE(users_of(heap) == 1 && !heap_is_armed_by(heap_of_thread, ARMED_BY_PROFILE));
  REQUIRE(hak_heap_use(heap, NULL) && users_of(heap) == 1);
  REQUIRE(hak_heap_use(other, NULL) && are_all_armed());
  REQUIRE(users_of(heap) == 0 && users_of(other) == 1);
  REQUIRE(hak_heap_destroy(heap) && hak_heap_destroy(other) && !are_all_armed());
  REQUIRE(heap_of_new_block(64) == NULL);
}

/* A profile begins and ends in every state; no lot outlives it, and blocks are counted exactly. */
CHILD_TEST(beside_profile) {
  struct hak_heap *heap = hak_heap_new("profiled");
  uint64_t made = 0;
  for (unsigned round = 0; round < 16; round++) {
    bool is_on = round & 1, is_used = round & 2;
    if (is_on)
      switch_on(round & 4 ? 100 : 1 << 20);
    else
      switch_off();
    hak_free(must_malloc(200)); /* looks */
    REQUIRE(hak_heap_use(is_used ? heap : NULL, NULL));
    REQUIRE(heap_of_thread->magazines[CLASS_64].passes == 0 || !is_used);
    for (unsigned turn = 0; turn < SOME; turn++)
      REQUIRE(heap_of_new_block(64) == (is_used ? heap : NULL));
    if (is_on) made += SOME;
    REQUIRE(profiled(CLASS_64) == made);
    REQUIRE(are_all_armed() == (is_on || is_used));
    REQUIRE(heap_is_armed_by(heap_of_thread, ARMED_BY_PROFILE) == is_on);
  }
  switch_off();
  REQUIRE(hak_heap_use(NULL, NULL) && hak_heap_destroy(heap));
}

/* What realloc moves stays the thread's own, and is no lot's. */
CHILD_TEST(move_beside_profile) {
  struct hak_heap *heap = hak_heap_new("in use");
  switch_on(1 << 20);
  void *blocks[SOME];
  for (unsigned index = 0; index < SOME; index++) blocks[index] = must_malloc(32);
  REQUIRE(hak_heap_use(heap, NULL));
  for (unsigned index = 0; index < SOME; index++) {
    REQUIRE((blocks[index] = hak_realloc(blocks[index], 64)) && !hak_heap_of(blocks[index]));
    REQUIRE(heap_of_thread->magazines[CLASS_64].passes == 0 && heap_of_new_block(64) == heap);
    hak_free(blocks[index]);
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct hak_heap *shared;

static void *use_and_end(void *unused) {
  REQUIRE(hak_heap_use(shared, NULL) && users_of(shared) == 1 && heap_of_new_block(64) == shared);
  return unused;
}

static void *find_own(void *unused) {
  REQUIRE(heap_of_new_block(64) == NULL && !are_all_armed() && !heap_of_thread->used);
  return unused;
}

CHILD_TEST(end_thread) {
  shared = hak_heap_new("shared");
  for (unsigned thread = 0; thread < 3; thread++) {
    on_a_thread(use_and_end, NULL);
    REQUIRE(users_of(shared) == 0);
    on_a_thread(find_own, NULL);
  }
  REQUIRE(hak_heap_destroy(shared));
}

CHILD_TEST(without_memory) {
  struct hak_heap *heap = hak_heap_new("unused"), *before = heap;
  struct heap *own = heap_of_thread;
  heap_of_thread = (struct heap *)(uintptr_t)&ended_heap;
  REQUIRE(!hak_heap_use(heap, &before) && errno == ENOMEM && before == heap && !users_of(heap));
  REQUIRE(hak_heap_use(NULL, &before) && !before);
  heap_of_thread = own;
  REQUIRE(hak_heap_destroy(heap));
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Other threads' uses are gone; one's own goes on, in what stands for a heap that was cut off. */
CHILD_TESTS(fork_in_use, bool, is_cut, false, true) {
  start_library();
  struct hak_heap *heap = hak_heap_new("used"), *other = hak_heap_new("another's"), *before;
  REQUIRE(hak_heap_use(heap, NULL));
  store_relaxed(&heap->users, 3);
  store_relaxed(&other->users, 1);
  if (is_cut) store_relaxed(&heap->owner.latch, 12345); /* a thread that is not here */
  named_after_fork(heap_of_thread->used);
  REQUIRE(users_of(heap) == 1 && users_of(other) == 0 && hak_heap_destroy(other));
  REQUIRE(named_is(heap, NAMED_CUT_OFF) == is_cut);
  REQUIRE(heap_of_new_block(64) == heap && heap_of_new_block(200000) == heap);
  REQUIRE(hak_heap_use(heap, &before) && before == heap);
  REQUIRE(hak_heap_destroy(heap) && heap_of_new_block(64) == NULL && !are_all_armed());
}

/* A thread was cut off between any two steps of its heap's arming: who gets it begins anew. */
CHILD_TEST(parked_half_armed) {
  struct hak_heap *heap = hak_heap_new("half");
  for (unsigned step = 0; step < 3; step++) {
    store_relaxed(&heap_of_thread->armed, ARMED_BY_USE);
    if (step > 0) magazine_arm(&heap_of_thread->magazines[CLASS_64], true);
    if (step > 1) heap_of_thread->used = heap;
    REQUIRE(heap_is_valid(heap_of_thread));
    divert_disarm(heap_of_thread);
    REQUIRE(!heap_of_thread->used && !are_all_armed());
  }
}

/* ---- mistakes -------------------------------------------------------------------------------- */

#define SAID "hakmem: invalid hak_heap_use of 0x", ": the heap was destroyed"

REPORT_TEST(use_of_destroyed, SAID) {
  struct hak_heap *heap = hak_heap_new("gone");
  REQUIRE(hak_heap_destroy(heap));
  hak_heap_use(heap, NULL);
}

/* Another thread is at it at this moment. */
REPORT_TEST(use_of_closed, SAID) {
  struct hak_heap *heap = hak_heap_new("going");
  REQUIRE(named_close(heap, 0));
  hak_heap_use(heap, NULL);
}
