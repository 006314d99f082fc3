/* src/ranges/range: split, merge, alignment, resizing, purge; and a long random run against a
 * model. */
#include "ranges/range.h"

#include "ranges.h"

static uint64_t purge(uint32_t decay_ms, bool give_addresses) {
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = decay_ms,
                        .calls_left = SIZE_MAX,
                        .give_addresses = give_addresses};
  range_purge(&purge, &counters);
  return purge.purged_bytes;
}

/* ---- split and merge ------------------------------------------------------------------------- */

CHILD_TEST(split_and_merge) {
  size_t a = take(4), b = take(4), c = take(4), end = take(1);
  REQUIRE(b == a + 4 && c == b + 4 && end == c + 4); /* split from one fresh piece */
  give(a);
  give(c);
  REQUIRE(take(5) > end); /* two pieces of 4 are not 5 */
  give(b);                /* merges with both sides */
  size_t whole = take(12);
  REQUIRE(whole == a && range_info(whole)->granules == 12 && !range_info(whole)->is_zero);
}

CHILD_TEST(tight_fit) {
  size_t large = take(20), wall = take(1), small = take(6), end = take(1);
  REQUIRE(wall && end);
  give(large);
  give(small);
  REQUIRE(take(5) == small);
  REQUIRE(take(21) > end);
  REQUIRE(take(15) == large);
  REQUIRE(take(5) == large + 15);
  REQUIRE(load_relaxed(&counters.value[COUNT_large_range_hits]) == 3);
}

/* A freed range and the untouched one above it: only the missing part is fresh. */
CHILD_TEST(joint_fit) {
  size_t wall = take(1), last = take(8);
  give(last);
  size_t joint = take(12);
  REQUIRE(joint == last && range_info(joint)->granules == 12 && !range_info(joint)->is_zero);
  REQUIRE(measure().dirty_bytes == 0);
  give(joint);
  take(25); /* less than half of it would be reused */
  REQUIRE(wall == joint - 1 && measure().dirty_bytes == 12 * GRANULE_BYTES);
}

/* Growth is purged elsewhere, as far as time has earned it. */
CHILD_TEST(offset_growth) {
  size_t small = take(3), wall = take(1), large = take(8), end = take(1);
  REQUIRE(wall && end);
  give(small);
  give(large);
  REQUIRE(take(9) && measure().dirty_bytes == 11 * GRANULE_BYTES); /* nothing earned */
  os_fake.processor_ms = 10;
  os_fake_advance_ms(20); /* it is not asked for more often */
  REQUIRE(take(9) && measure().dirty_bytes == 3 * GRANULE_BYTES); /* the largest goes */
  REQUIRE(take(9) && measure().dirty_bytes == 3 * GRANULE_BYTES); /* two left, nine wanted */
  os_fake.processor_ms = 20;
  os_fake_advance_ms(20);
  REQUIRE(take(9) != large && measure().dirty_bytes == 0);
  REQUIRE(*bytes_of(large) == 0);
}

CHILD_TEST(alignment) {
  for (size_t alignment_granules = 1; alignment_granules <= 256; alignment_granules *= 2) {
    take(1); /* so that nothing is aligned by itself */
    size_t first = take_from(3, alignment_granules, 0);
    REQUIRE(granule_address(first) % (alignment_granules * GRANULE_BYTES) == 0);
    REQUIRE(range_info(first)->granules == 3);
  }
}

/* ---- resizing -------------------------------------------------------------------------------- */

CHILD_TEST(extend_and_shrink) {
  size_t a = take(4), b = take(8), end = take(1);
  REQUIRE(end == b + 8);
  REQUIRE(!range_extend(a, 5, &counters)); /* the neighbour lives */
  give(b);
  REQUIRE(range_extend(a, 10, &counters) && range_info(a)->granules == 10);
  REQUIRE(!range_extend(a, 13, &counters) && range_info(a)->granules == 10);
  REQUIRE(range_extend(a, 12, &counters));
  range_shrink(a, 1, &counters);
  REQUIRE(range_info(a)->granules == 1 && take(11) == a + 1);
}

/* Into a freed neighbour and the untouched one above it. */
CHILD_TEST(extend_over_two) {
  size_t a = take(4), b = take(4);
  give(b);
  REQUIRE(range_extend(a, 20, &counters) && range_info(a)->granules == 20);
  REQUIRE(!range_extend(a, 4096, &counters) && range_info(a)->granules == 20);
  REQUIRE(take(1) == a + 20);
}

CHILD_TEST(extend_over_old_pages) {
  size_t a = take(4), b = take(4);
  REQUIRE(range_info(a)->is_zero);
  memset(bytes_of(b), 1, GRANULE_BYTES);
  give(b);
  REQUIRE(range_extend(a, 6, &counters));
  REQUIRE(!range_info(a)->is_zero); /* the neighbour's pages are not */
}

/* ---- purge ----------------------------------------------------------------------------------- */

CHILD_TEST(purge_by_age) {
  size_t a = take(4), wall = take(1), b = take(4), end = take(1);
  REQUIRE(wall && end);
  memset(bytes_of(a), 7, 4 * GRANULE_BYTES);
  memset(bytes_of(b), 7, 4 * GRANULE_BYTES);
  give(a);
  os_fake_advance_ms(600);
  give(b);
  os_fake_advance_ms(400);
  REQUIRE(measure().dirty_bytes == 8 * GRANULE_BYTES);
  REQUIRE(purge(1000, false) == 4 * GRANULE_BYTES);
  REQUIRE(*bytes_of(a) == 0 && *bytes_of(b) == 7);
  REQUIRE(measure().dirty_bytes == 4 * GRANULE_BYTES);
  REQUIRE(take(4) == b); /* resident pages first */
  size_t clean = take(4);
  REQUIRE(clean == a && range_info(clean)->is_zero);
}

/* A round ends after its number of calls; the next goes on with the oldest range. */
CHILD_TEST(purge_in_parts) {
  enum { RANGES = 10, PART = 4 };
  size_t freed[RANGES];
  for (unsigned index = 0; index < RANGES; index++) {
    freed[index] = take(1 + index % 3);
    REQUIRE(take(1)); /* a wall */
  }
  for (unsigned index = RANGES; index-- > 0; os_fake_advance_ms(1)) {
    *bytes_of(freed[index]) = 7;
    give(freed[index]);
  }
  for (unsigned left = RANGES; left > 0; left -= left < PART ? left : PART) {
    struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(), .calls_left = PART};
    for (unsigned index = 0; index < RANGES; index++)
      REQUIRE((*bytes_of(freed[index]) == 7) == (index < left));
    range_purge(&purge, &counters);
    REQUIRE(PART - purge.calls_left == (left < PART ? left : PART) &&
            purge.work_remains == (left > PART) && purge.is_cut == (left > PART));
    require_laws();
  }
  REQUIRE(measure().dirty_bytes == 0);
}

/* A range freed during a round has its own age. */
CHILD_TEST(freed_since_the_round_began) {
  size_t a = take(4);
  struct purge purge = {
      .now_ms = (uint32_t)os_now_coarse_ms(), .decay_ms = 1000, .calls_left = SIZE_MAX};
  os_fake_advance_ms(5);
  give(a);
  range_purge(&purge, &counters);
  REQUIRE(measure().dirty_bytes == 4 * GRANULE_BYTES && purge.work_remains);
}

/* Freed late, as a cache does, with an older stamp: at its place by age, and the older neighbour's
 * where it merges. */
CHILD_TEST(ages_in_order) {
  size_t ranges[6];
  for (unsigned index = 0; index < 6; index++) {
    ranges[index] = take(4);
    REQUIRE(take(1));
  }
  static const uint32_t stamps_ms[6] = {500, 300, 900, 100, 700, 300};
  for (unsigned index = 0; index < 6; index++) {
    range_give(ranges[index], stamps_ms[index], &counters);
    require_laws();
  }
  enum { CALLS = 6 };
  struct purge purge = {.now_ms = 1000, .decay_ms = 500, .calls_left = CALLS};
  range_purge(&purge, &counters);
  REQUIRE(CALLS - purge.calls_left == 4 && measure().dirty_bytes == 8 * GRANULE_BYTES);
}

CHILD_TEST(purge_refused) {
  size_t a = take(4);
  memset(bytes_of(a), 7, GRANULE_BYTES);
  give(a);
  os_fake_fail(1u << OS_CALL_PURGE, 1, 1);
  purge(0, false);
  REQUIRE(measure().dirty_bytes == 4 * GRANULE_BYTES); /* DIRTY as before: never taken for zero */
  size_t again = take(4);
  REQUIRE(again == a && !range_info(again)->is_zero && *bytes_of(a) == 7);
}

/* Purged granules that are used again are counted once each. */
CHILD_TEST(use_after_purge) {
  size_t first = take(40), end = take(1);
  REQUIRE(end == first + 40);
  give(first);
  REQUIRE(purge(0, false) == 40 * GRANULE_BYTES);
  REQUIRE(load_relaxed(&totals.refaulted_bytes) == 0);
  REQUIRE(take(35) == first && load_relaxed(&totals.refaulted_bytes) == 35 * GRANULE_BYTES);
  REQUIRE(range_extend(first, 40, &counters));
  REQUIRE(load_relaxed(&totals.refaulted_bytes) == 40 * GRANULE_BYTES);
  give(first);
  REQUIRE(take(40) == first && load_relaxed(&totals.refaulted_bytes) == 40 * GRANULE_BYTES);
}

CHILD_TEST(addresses) {
  size_t a = take(32);
  memset(bytes_of(a), 7, 32 * GRANULE_BYTES);
  give(a);
  uint64_t before = load_relaxed(&os_fake.address_bytes);
  purge(0, true);
  REQUIRE(before - load_relaxed(&os_fake.address_bytes) >= 32 * GRANULE_BYTES);
  REQUIRE(measure().mapped_bytes == 0);
  os_fake_fail(1u << OS_CALL_MAP_AT, 1, UINT64_MAX);
  REQUIRE(take(32) == NO_GRANULE);
  os_fake_fail_none();
  size_t again = take(32);
  REQUIRE(again == a && range_info(a)->is_zero && *bytes_of(a) == 0);
}

BARE_TEST(strict_overcommit) {
  os_fake.is_overcommit_strict = true;
  set_up();
  size_t a = take(32);
  uint64_t before = load_relaxed(&os_fake.charged_bytes);
  give(a);
  purge(0, false);
  REQUIRE(before - load_relaxed(&os_fake.charged_bytes) >= 32 * GRANULE_BYTES);
}

CHILD_TEST(moved_pages) {
  size_t a = take(4);
  range_note_moved(a);
  give(a);
  purge(0, false);
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_REMAP]) == 1); /* heals the mapping */
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_PURGE]) == 0);
  give(take(4));
  purge(0, false);
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_REMAP]) == 1);
}

/* ---- arenas ---------------------------------------------------------------------------------- */

CHILD_TEST(other_homes) {
  size_t a = take_from(8, 1, 0);
  REQUIRE(load_relaxed(&arenas_in_use) == 1); /* the pages of others stay untouched */
  size_t b = take_from(8, 1, 1);
  range_give(a, 0, &counters);
  REQUIRE(take_from(8, 1, 1) == a); /* a free range of one arena serves all */
  range_give(b, 0, &counters);
  REQUIRE(take_from(8, 1, 0) == b);
}

CHILD_TEST(refused) {
  for (uint64_t call = 1; call <= 6; call++) {
    os_fake_fail(OS_CALLS_ALL, call, call);
    size_t a = take(64);
    os_fake_fail_none();
    if (a != NO_GRANULE) memset(bytes_of(a), 1, 64 * GRANULE_BYTES);
    REQUIRE(take(64) != NO_GRANULE);
  }
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { LIVE_MAX = 300, STEPS = 60000 };

/* First and last byte of every granule carry the range's mark: overlaps and lost content show. */
static void set_marks(struct live *live, size_t from, unsigned char mark) {
  live->mark = mark;
  for (size_t at = from; at < live->granules; at++) {
    bytes_of(live->granule + at)[0] = mark;
    bytes_of(live->granule + at)[GRANULE_BYTES - 1] = mark;
  }
}

static void check_marks(const struct live *live) {
  REQUIRE(range_info(live->granule)->granules == live->granules);
  for (size_t at = 0; at < live->granules; at++) {
    REQUIRE(bytes_of(live->granule + at)[0] == live->mark);
    REQUIRE(bytes_of(live->granule + at)[GRANULE_BYTES - 1] == live->mark);
  }
}

static struct live take_random(uint64_t *random) {
  size_t granules = 1 + random_below(random, random_below(random, 8) ? 16 : 100);
  size_t alignment_granules = (size_t)1 << (random_below(random, 8) ? 0 : random_below(random, 6));
  unsigned home = (unsigned)random_below(random, 4);
  struct live live = take_live(granules, alignment_granules, home);
  if (range_info(live.granule)->is_zero)
    for (size_t at = 0; at < granules; at++) REQUIRE(bytes_of(live.granule + at)[0] == 0);
  set_marks(&live, 0, (unsigned char)(1 + random_below(random, 255)));
  return live;
}

static void resize_random(struct live *live, uint64_t *random) {
  size_t before = live->granules, after = 1 + random_below(random, 2 * before);
  if (after > before && !range_extend(live->granule, after, &counters)) return;
  if (after < before) range_shrink(live->granule, after, &counters);
  live->granules = after;
  if (after > before) set_marks(live, before, live->mark);
}

CHILD_TEST(model) {
  struct live live[LIVE_MAX];
  unsigned live_count = 0;
  uint64_t random = 20261120;
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned choice = (unsigned)random_below(&random, 100);
    unsigned which = live_count ? (unsigned)random_below(&random, live_count) : 0;
    if (choice == 0) {
      purge(random_below(&random, 2) ? 0 : 50, random_below(&random, 4) == 0);
    } else if (choice < 20 && live_count) {
      check_marks(&live[which]);
      resize_random(&live[which], &random);
    } else if (choice < 20 + 80 * live_count / LIVE_MAX && live_count) {
      check_marks(&live[which]);
      give(live[which].granule);
      live[which] = live[--live_count];
    } else if (live_count < LIVE_MAX) {
      live[live_count++] = take_random(&random);
    }
    os_fake_advance_ms(1);
    require_laws();
  }
  uint64_t live_bytes = 0;
  for (unsigned index = 0; index < live_count; index++)
    live_bytes += live[index].granules << GRANULE_SHIFT;
  struct range_sizes sizes = measure();
  REQUIRE(sizes.mapped_bytes == live_bytes + sizes.dirty_bytes + sizes.clean_bytes);
  while (live_count) {
    check_marks(&live[--live_count]);
    give(live[live_count].granule);
  }
  sizes = measure();
  REQUIRE(sizes.mapped_bytes == sizes.dirty_bytes + sizes.clean_bytes);
}

/* ---- fork ------------------------------------------------------------------------------------ */

enum { LONG_GRANULES = 8 * GRANULES_PER_CHUNK };

/* Its last granule's record, which is written under the arena's lock, lies in a page that may not
 * be written. */
static void *give_until_stopped(void *granule) {
  give((size_t)granule);
  return NULL;
}

/* In the child the arena's lists are half changed, and no thread will release its lock. */
static int go_on_in_the_child(size_t live, size_t given, size_t mapped_bytes) {
  signal(SIGSEGV, SIG_DFL);
  alarm(10);
  protect_record(given + LONG_GRANULES - 1, PROT_READ | PROT_WRITE);
  arenas_after_fork();
  REQUIRE(measure().mapped_bytes == mapped_bytes);
  REQUIRE(bytes_of(live)[0] == 7 && range_info(live)->granules == 8);
  size_t fresh = take(8);
  REQUIRE(fresh != NO_GRANULE && fresh / GRANULES_PER_CHUNK > live / GRANULES_PER_CHUNK);
  REQUIRE(!range_extend(live, 9, &counters));
  range_shrink(live, 4, &counters);
  REQUIRE(range_info(live)->granules == 4 && bytes_of(live)[0] == 7);
  give(live); /* of no arena: its pages go, it is not used again */
  REQUIRE(bytes_of(live)[0] == 0 && take(4) != live && take(1) != live);
  give(fresh);
  REQUIRE(take(8) == fresh);
  return 0;
}

/* At a hard limit the pages of what is freed go at once; the system has lost some when it was to
 * map them anew. */
CHILD_TEST(lose_at_the_limit) {
  limits.hard_bytes = UINT64_MAX;
  size_t range = take(16);
  range_note_moved(range);
  REQUIRE(range_count_for(range, 15 * GRANULE_BYTES + 100));
  limits.hard_bytes = load_relaxed(&totals.committed_bytes);
  os_fake_fail(1u << OS_CALL_REMAP, 1, 1);
  os_fake.does_half = true;
  give(range);
  REQUIRE(os_fake.refused[OS_CALL_REMAP] == 1 && !load_relaxed(&totals.uncounted_bytes));
  require_laws();
  limits.hard_bytes = 0;
  memset(bytes_of(take(16)), 7, 16 * GRANULE_BYTES);
}

CHILD_TEST(set_aside_in_a_child) {
  size_t live = take(8);
  REQUIRE(
      metadata_allocate(2 * os_page_bytes())); /* the records of the next one's ends are apart */
  size_t given = take(LONG_GRANULES);
  bytes_of(live)[0] = 7;
  size_t mapped_bytes = measure().mapped_bytes;
  cut_off_at(given + LONG_GRANULES - 1, PROT_READ, give_until_stopped, (void *)given);
  pid_t child = fork();
  if (child == 0) _exit(go_on_in_the_child(live, given, mapped_bytes));
  require_child_succeeded(child);
}
