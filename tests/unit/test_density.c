/* src/large/density: how much of its Large blocks the program touches. */
#include "large/density.h"

#include "child.h"
#include "fake/os_fake.h"
#include "map/metadata.h"

enum { DENSITY_PARTS = 256 };

static struct counters counters;

static size_t set_up(void) {
  REQUIRE(window_init(UINT64_C(64) << 30) && metadata_allocate(1));
  return range_take_fresh(&(struct range_request){4, 1, 0, FROM_ANY}, &counters);
}

/* Many times: not all of them are looked at. */
static void come_back(size_t granule, unsigned untouched_parts) {
  os_fake.untouched_parts = untouched_parts;
  for (unsigned round = 0; round < 1000; round++) density_note(granule);
}

/* Until the next look is done. */
static void come_back_once(size_t granule) {
  for (unsigned round = 0; round < 16; round++) density_note(granule);
}

static int judge_after_some_looks(const void *unused) {
  (void)unused;
  size_t granule = set_up();
  os_fake.untouched_parts = DENSITY_PARTS;
  come_back_once(granule);
  REQUIRE(!density_is_low()); /* it may be the only one */
  come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low());
  return 0;
}

/* A program that touches a third or a half of its blocks has not got sparse ones; but who has got some may fill them
 * up as far. */
static int stay_as_it_is_between(const void *unused) {
  (void)unused;
  size_t granule = set_up();
  come_back(granule, DENSITY_PARTS * 2 / 3);
  REQUIRE(!density_is_low());
  come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low());
  come_back(granule, DENSITY_PARTS * 2 / 3);
  REQUIRE(density_is_low());
  return 0;
}

static int follow_the_program(const void *unused) {
  (void)unused;
  size_t granule = set_up();
  come_back(granule, 0);
  REQUIRE(!density_is_low());
  come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low());
  come_back(granule, 0);
  REQUIRE(!density_is_low());
  return 0;
}

CHILD_TEST(judge_after_some_looks)
CHILD_TEST(stay_as_it_is_between)
CHILD_TEST(follow_the_program)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_judge_after_some_looks),
      cmocka_unit_test(test_stay_as_it_is_between),
      cmocka_unit_test(test_follow_the_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
