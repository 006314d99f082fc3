/* src/slab/adopt: Route P, each of its conditions with time held, and dormant owners. */
#include "slab/adopt.h"

#include "owners.h"

enum { SLABS = 6, REMOTE = 20 };

/* `other` owns SLABS slabs, each with remote frees; `mine` wants blocks. */
static void set_up(unsigned remote) {
  for (unsigned index = 0; index < SLABS; index++)
    free_remotely(full_slab(&other, CLASS_64), remote);
}

static void wait_us(uint64_t microseconds) {
  fetch_add_relaxed(&os_fake.now_ns, microseconds * 1000);
}

static struct slab *adopt(void) { return adopt_route_p(&mine, CLASS_64); }
static uint64_t blocked(enum counter which) { return counted(&mine, which); }

/* Idleness is observed: somebody must have looked before. */
static void look_and_wait(uint64_t microseconds) {
  REQUIRE(!adopt());
  wait_us(microseconds);
}

CHILD_TEST(allowed) {
  set_up(REMOTE);
  look_and_wait(200);
  struct slab *slab = adopt();
  REQUIRE(slab && slab->free_local == REMOTE && blocked(COUNT_route_p_allowed) == 1);
  REQUIRE(load_relaxed(&slab->owner) == &mine);
  REQUIRE(owner_map_entry(slab->base) == map_entry(mine.tag, CLASS_64));
  REQUIRE(queued_in(&other, CLASS_64) == SLABS - 1);
  REQUIRE(load_relaxed(&mine.bytes_out) == (slab->capacity - REMOTE) * 64);
  REQUIRE(load_relaxed(&other.latch) == 0);
}

CHILD_TEST(blocked_by_refusal) {
  set_up(REMOTE);
  look_and_wait(199); /* idle, but each slab's first remote free is younger than 200 us */
  REQUIRE(!adopt() && blocked(COUNT_route_p_blocked_refusal) > 0);
  REQUIRE(queued_in(&other, CLASS_64) == SLABS); /* left where they were */
  wait_us(1);
  REQUIRE(adopt());
}

CHILD_TEST(blocked_by_activity) {
  set_up(REMOTE);
  look_and_wait(1000);
  add_single_writer(&other.slow_paths, 1); /* it was in one meanwhile */
  uint64_t before = blocked(COUNT_route_p_blocked_idle);
  REQUIRE(!adopt() && blocked(COUNT_route_p_blocked_idle) == before + 1);
  wait_us(149);
  REQUIRE(!adopt() && blocked(COUNT_route_p_blocked_idle) == before + 2);
  wait_us(1);
  REQUIRE(adopt());
}

CHILD_TEST(blocked_by_few_blocks) {
  set_up(7);
  look_and_wait(1000);
  REQUIRE(!adopt() && blocked(COUNT_route_p_blocked_few) > 0);
  route_p.remote_min = 7;
  REQUIRE(adopt());
}

/* The candidate is in a slow path at this very moment. */
CHILD_TEST(blocked_by_latch) {
  set_up(REMOTE);
  look_and_wait(1000);
  REQUIRE(latch_try(&other));
  REQUIRE(!adopt());
  latch_give(&other);
  REQUIRE(adopt());
}

/* ---- dormant owners -------------------------------------------------------------------------- */

CHILD_TEST(sleep_and_wake) {
  struct slab *slab = full_slab(&other, CLASS_64);
  put_bits(slab, &other, 0, 0xff);
  REQUIRE(!adopt_from_ended(&mine, CLASS_64)); /* it runs */
  REQUIRE(sweep_owners(1));                    /* first look */
  wait_us(999);
  sweep_owners(1);
  REQUIRE(load_relaxed(&other.state) == OWNER_RUNNING);
  wait_us(1);
  sweep_owners(1);
  REQUIRE(load_relaxed(&other.state) == OWNER_DORMANT);
  REQUIRE(adopt_from_ended(&mine, CLASS_64) == slab && load_relaxed(&slab->owner) == &mine);
  REQUIRE(!adopt_from_ended(&mine, CLASS_64));
}

/* Whoever finds it busy leaves the hint for the next one. */
CHILD_TEST(busy_sleeper) {
  struct slab *slab = full_slab(&other, CLASS_64);
  put_bits(slab, &other, 0, 0xff);
  sweep_owners(0);
  os_fake.is_multi_threaded = true;
  store_relaxed(&other.latch, LATCH_OWN);
  REQUIRE(!adopt_from_ended(&mine, CLASS_64));
  store_relaxed(&other.latch, LATCH_FREE);
  REQUIRE(adopt_from_ended(&mine, CLASS_64) == slab);
}

/* Remote frees that come after the owner fell asleep are found as well. */
CHILD_TEST(free_to_a_sleeper) {
  struct slab *slab = full_slab(&other, CLASS_64);
  sweep_owners(0);
  REQUIRE(load_relaxed(&other.state) == OWNER_DORMANT);
  REQUIRE(!adopt_from_ended(&mine, CLASS_64));
  free_remotely(slab, 4);
  REQUIRE(adopt_from_ended(&mine, CLASS_64) == slab && slab->free_local == 4);
}

CHILD_TEST(release_what_is_free) {
  struct slab *slab = full_slab(&other, CLASS_4K);
  free_remotely(slab, slab->capacity);
  sweep_owners(0);
  REQUIRE(!load_relaxed(&slab->owner) && load_relaxed(&slab->state) == SLOT_EMPTY);
  REQUIRE(load_relaxed(&other.bytes_out) == 0);
}
