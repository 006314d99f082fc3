/* src/reclaim/regret: what went back in vain is learnt, and forgotten. */
#include "reclaim/regret.h"

#include "base/counters.h"
#include "config/options.h"
#include "unit.h"

enum { NOW_MS = 100000, A_WHILE_MS = 100 };

static const uint64_t much = 8 << 20, little = 1 << 20;

static void give(uint32_t now_ms, uint64_t bytes) {
  regret_note_given(&(struct purge){.now_ms = now_ms, .purged_bytes = bytes}, false);
}

static uint32_t long_after(uint32_t ms) { return ms + 9 * (uint32_t)options.decay_ms; }

BEFORE(each) {
  options.decay_ms = 1000;
  regret_judge(NOW_MS / 2);
}

/* What it has given is taken again at once. */
static void regret(void) {
  give(NOW_MS, much);
  fetch_add_relaxed(&totals.refaulted_bytes, much);
  regret_judge(NOW_MS + A_WHILE_MS);
  assert_int_equal(regret_level(), 1);
}

TEST(taken_again) {
  regret();
  regret_judge(NOW_MS + 2 * A_WHILE_MS);
  assert_int_equal(regret_level(), 1);
}

TEST(not_taken_again) {
  regret();
  give(NOW_MS + A_WHILE_MS, much);
  regret_judge(long_after(NOW_MS + A_WHILE_MS));
  assert_int_equal(regret_level(), 0);
}

/* A program that frees little later on is not remembered for ever for what it was. */
TEST(little_given_since) {
  regret();
  give(NOW_MS + A_WHILE_MS, little);
  regret_judge(long_after(NOW_MS + A_WHILE_MS));
  assert_int_equal(regret_level(), 0);
}

TEST(nothing_given_since) {
  regret();
  regret_judge(long_after(NOW_MS + A_WHILE_MS));
  assert_int_equal(regret_level(), 0);
}
