/* src/reclaim/feasible: requests that nothing can serve cost no caches. */
#include "reclaim/feasible.h"

#include "config/limits.h"
#include "heaps.h"

BEFORE(child) { start_library(); }

static bool is_feasible(size_t size) {
  struct allocation allocation = {.size = size, .alignment = 1};
  return feasible_at_all(&allocation);
}

CHILD_TEST(the_window_bounds_a_request) {
  REQUIRE(is_feasible(3 << 20));
  REQUIRE(is_feasible((size_t)1 << 34));
  REQUIRE(!is_feasible((size_t)1 << 46)); /* more than any window */
}

CHILD_TEST(the_hard_limit_bounds_it) {
  limits.hard_bytes = 64 << 20;
  REQUIRE(is_feasible(32 << 20));
  REQUIRE(!is_feasible(65 << 20));
}

/* malloc says so at once, and what the program has is untouched. */
CHILD_TEST(an_impossible_request_gives_nothing_back) {
  for (unsigned each = 0; each < 8; each++) hak_free(must_malloc(200000));
  uint64_t purges = look().os_purges;
  errno = 0;
  REQUIRE(!hak_malloc((size_t)1 << 46) && errno == ENOMEM);
  REQUIRE(look().os_purges == purges);
}
