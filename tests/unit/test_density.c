/* src/ranges/density: how much of its Large blocks the program touches. */
#include "ranges/density.h"

#include "child.h"
#include "fake/os_fake.h"
#include "map/metadata.h"

enum { DENSITY_PARTS = 256 };

static struct counters counters;

static size_t set_up(void) {
  REQUIRE(window_init(UINT64_C(64) << 30) && metadata_allocate(1));
  return range_take_fresh(&(struct range_request){4, 1, 0, 0}, &counters);
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

CHILD_TEST(judge_after_some_looks) {
  size_t granule = set_up();
  os_fake.untouched_parts = DENSITY_PARTS;
  come_back_once(granule);
  REQUIRE(!density_is_low()); /* it may be the only one */
  come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low());
}

/* A program that touches a third or a half of its blocks has not got sparse ones; but who has got
 * some may fill them up as far. */
CHILD_TEST(stay_as_it_is_between) {
  size_t granule = set_up();
  come_back(granule, DENSITY_PARTS * 2 / 3);
  REQUIRE(!density_is_low());
  come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low());
  come_back(granule, DENSITY_PARTS * 2 / 3);
  REQUIRE(density_is_low());
}

/* Whose blocks are touched at their beginning alone may end anywhere. */
CHILD_TEST(judge_ends) {
  size_t granule = set_up();
  come_back(granule, 0);
  REQUIRE(!load_relaxed(&density_end_mask));
  for (unsigned times = 0; times < 3; times++) come_back(granule, DENSITY_PARTS - 8);
  REQUIRE(density_is_low() && load_relaxed(&density_end_mask) == RANGE_ENDS - 1);
  for (unsigned times = 0; times < 3; times++) come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low() && !load_relaxed(&density_end_mask));
  for (unsigned times = 0; times < 3; times++) come_back(granule, DENSITY_PARTS - 8);
  REQUIRE(load_relaxed(&density_end_mask) == RANGE_ENDS - 1);
  come_back(granule, 0);
  REQUIRE(!load_relaxed(&density_end_mask));
}

/* Two ends in one page cost the same: they are told apart no more. */
CHILD_TEST(judge_ends_by_page) {
  static const struct {
    size_t page_bytes;
    uint32_t mask;
  } pages[] = {{4 << 10, 7}, {8 << 10, 7}, {16 << 10, 6}, {32 << 10, 4}, {64 << 10, 0}};
  for (unsigned index = 0; index < sizeof pages / sizeof pages[0]; index++) {
    os_fake.page_bytes = pages[index].page_bytes;
    if (index == 0) set_up();
    size_t granule = range_take_fresh(&(struct range_request){4, 1, 0, 0}, &counters);
    for (unsigned times = 0; times < 3; times++) come_back(granule, DENSITY_PARTS - 8);
    REQUIRE(density_is_low() && load_relaxed(&density_end_mask) == pages[index].mask);
  }
}

/* Eighths of the last granule, which begins a page before a multiple of its size. */
CHILD_TEST(know_ends) {
  for (size_t granules = 2; granules < 5; granules++) {
    size_t first = size_of_granules(granules - 1) + 1;
    for (size_t bytes = first; bytes <= size_of_granules(granules); bytes += 61)
      REQUIRE(density_end_of(bytes) == (bytes - first) / END_STEP_BYTES);
    REQUIRE(density_end_of(size_of_granules(granules)) == RANGE_ENDS - 1);
  }
}

CHILD_TEST(follow_the_program) {
  size_t granule = set_up();
  come_back(granule, 0);
  REQUIRE(!density_is_low());
  come_back(granule, DENSITY_PARTS);
  REQUIRE(density_is_low());
  come_back(granule, 0);
  REQUIRE(!density_is_low());
}
