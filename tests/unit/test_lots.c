/* src/profile/sampler.c, src/heap/sampling.c: small blocks are counted in lots before they are
 * handed out, which changes neither what is to be expected of them nor what is known exactly. */
#include "profile/sampler.h"

#include "heap/sampling.h"
#include "profiles.h"

BEFORE(child) { start_library(); }
enum { CLASS_64 = 4, CLASS_1K = 20, CLASS_4K = 28 };

/* ---- exact counts ---------------------------------------------------------------------------- */

/* After each request, and when lots were dropped; a heap has at most one of a class. */
CHILD_TEST(count_each) {
  enum { TURNS = 20000 };
  static const unsigned classes[] = {CLASS_64, CLASS_1K, CLASS_4K};
  uint64_t random = 5, made[3] = {0};
  switch_on(8192);
  hak_free(must_malloc(200)); /* looks */
  for (unsigned turn = 0; turn < TURNS; turn++) {
    unsigned which = (unsigned)random_below(&random, 3);
    size_t size = class_bytes(classes[which]);
    switch (random_below(&random, 4)) {
      case 0: hak_free(hak_aligned_alloc(16, size)); break;
      case 1: hak_free(hak_calloc(1, size)); break;
      default: hak_free(must_malloc(size));
    }
    made[which]++;
    if (turn % 1000 == 999) switch_on(turn % 2000 == 999 ? 4096 : 8192);
    for (unsigned index = 0; index < 3; index++) REQUIRE(profiled(classes[index]) == made[index]);
    REQUIRE(heap_is_valid(heap_of_thread));
  }
  REQUIRE(load_relaxed(&profile_state.samples) > 1000);
  switch_off();
  hak_free(must_malloc(200)); /* looks */
  for (unsigned index = 0; index < 3; index++) {
    hak_free(must_malloc(class_bytes(classes[index])));
    REQUIRE(profiled(classes[index]) == made[index]);
    REQUIRE(!heap_of_thread->magazines[classes[index]].passes);
  }
}

/* ---- bias ------------------------------------------------------------------------------------ */

/* Whoever looked only where it knows that a lot has no sample, and dropped that for a new R, would
 * draw twice for those. */
CHILD_TEST(drop_lots_blindly) {
  enum { TURNS = 12000, BLOCKS = 500, R = 256 << 10 };
  switch_on(R);
  hak_free(must_malloc(200));
  for (unsigned turn = 0; turn < TURNS; turn++) {
    store_relaxed(&profile_control.period_bytes, R + turn % 2); /* seen at the next look */
    for (unsigned index = 0; index < BLOCKS; index++) hak_free(must_malloc(1000));
  }
  REQUIRE(load_relaxed(&profile_state.samples) > 10000);
  REQUIRE_NEAR(estimate_sites(false).blocks, (double)(TURNS * BLOCKS), 0.03);
}

/* A class of which there are seldom blocks has its lot for long; one of which there are many does
 * not draw for it. */
CHILD_TEST(seldom_and_often) {
  enum { TURNS = 60000, OFTEN = 20 };
  switch_on(4096);
  hak_free(must_malloc(200));
  for (unsigned turn = 0; turn < TURNS; turn++) {
    (void)must_malloc(64); /* kept: it is counted below */
    for (unsigned index = 0; index < OFTEN; index++) hak_free(must_malloc(1000));
  }
  REQUIRE_NEAR(estimate_live(64).blocks, TURNS, 0.1);
  REQUIRE_NEAR(estimate_sites(false).blocks, (double)TURNS * (OFTEN + 1), 0.03);
}

/* ---- the sampler alone ----------------------------------------------------------------------- */

/* Of lots of any length each block is a sample with its probability. */
TEST(lots_of_any_length) {
  enum { BLOCKS = 2000000, BYTES = 300 };
  store_relaxed(&profile_control.period_bytes, 3000);
  for (unsigned most = 1; most <= 1024; most *= 32) {
    struct sampler sampler = {0};
    uint64_t samples = 0, blocks = 0;
    sampler_draw(&sampler);
    while (blocks < BLOCKS) {
      struct sampler_lot lot = sampler_count(&sampler, BYTES, most);
      assert_true(lot.blocks >= 1 && lot.blocks <= most);
      assert_true(lot.has_sample || lot.blocks == most);
      blocks += lot.blocks;
      samples += lot.has_sample;
    }
    double expected = (double)blocks * poisson_probability(BYTES, 3000);
    assert_true((double)samples > expected * 0.99 && (double)samples < expected * 1.01);
  }
}

/* However large a block is: the next look is due, and the sampler goes on. */
TEST(huge_blocks) {
  store_relaxed(&profile_control.period_bytes, PROFILE_PERIOD_MAX);
  struct sampler sampler = {.unlooked = 1000};
  sampler_draw(&sampler);
  for (unsigned index = 0; index < 100; index++) {
    struct sampler_lot lot = sampler_count(&sampler, (uint64_t)1 << 63, 1);
    assert_true(lot.has_sample && lot.blocks == 1);
    assert_int_equal(sampler.unlooked, 0);
    assert_true(sampler.countdown > 0);
  }
}
