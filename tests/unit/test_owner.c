/* src/slab/owner: the list of all owners, who is found by a tag, and the latch. */
#include "slab/owner.h"

#include "owners.h"

CHILD_TEST(owners_are_found_by_their_tags) {
  REQUIRE(owner_of_tag(mine.tag) == &mine && owner_of_tag(other.tag) == &other);
  REQUIRE(!owner_of_tag(3u << MAP_TAG_SHIFT));
  REQUIRE(owners_first() == &other && other.next_of_all == &mine);
  REQUIRE(owner_after(&other) == &mine && owner_after(&mine) == &other); /* in a circle */
}

CHILD_TEST(a_thread_is_told_while_there_is_one) {
  REQUIRE(owner_thread_id(NULL) == 0);
  REQUIRE(owner_thread_id(&mine) == os_process_id()); /* the first thread */
  store_relaxed(&mine.thread_id, 77);
  REQUIRE(owner_thread_id(&mine) == 77);
  store_relaxed(&mine.state, OWNER_PARKED);
  REQUIRE(owner_thread_id(&mine) == 0);
}

CHILD_TEST(the_latch_is_held_by_one) {
  latch_take(&mine);
  REQUIRE(!latch_try(&mine));
  REQUIRE(latch_try(&other)); /* each has its own */
  latch_give(&other);
  latch_give(&mine);
  REQUIRE(latch_try(&mine));
  latch_give(&mine);
  latch_fork_begin(&mine);
  REQUIRE(!latch_try(&mine));
  latch_give(&mine); /* the forking thread allocates meanwhile */
  REQUIRE(!latch_try(&mine));
  latch_fork_end(&mine);
  REQUIRE(latch_try(&mine));
}

/* The first work of a dormant owner wakes it. */
CHILD_TEST(work_wakes_a_dormant_owner) {
  store_relaxed(&mine.state, OWNER_DORMANT);
  uint64_t before = load_relaxed(&mine.slow_paths);
  owner_begin_work(&mine);
  latch_give(&mine);
  REQUIRE(load_relaxed(&mine.state) == OWNER_RUNNING);
  REQUIRE(load_relaxed(&mine.slow_paths) == before + 1);
}
