/* src/observe/snapshot: figures of all heaps, at one moment. */
#include "observe/snapshot.h"

#include "heaps.h"

static void *allocate_big(void *unused) {
  (void)unused;
  return must_malloc(3 << 20);
}

CHILD_TEST(heaps_are_summed) {
  start_library();
  uint64_t before = counted(COUNT_big_allocs);
  must_malloc(3 << 20);
  on_a_thread(allocate_big, NULL);
  on_a_thread(allocate_big, NULL); /* its heap is taken over by the next */
  REQUIRE(counted(COUNT_big_allocs) == before + 3);
}
CHILD_TEST(totals_are_those_of_the_process) {
  start_library();
  void *block = must_malloc(3 << 20);
  struct snapshot live = look();
  hak_free(block);
  struct snapshot freed = look();
  REQUIRE(live.big_live_bytes - freed.big_live_bytes == hak_good_size(3 << 20));
  REQUIRE(freed.big_peak_bytes >= live.big_live_bytes);
  REQUIRE(live.mapped_bytes >= 4 << 20 && freed.dirty_free_bytes >= 3 << 20);
}
