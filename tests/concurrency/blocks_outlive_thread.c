/* Blocks of every tier whose thread has ended: whole, freed by other threads, and reusable. */
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "memory/rss.h"

enum { ROUNDS = 60, EACH = 4, WARM_UP = 10 };

static void *blocks[TIER_SIZES][EACH];

static void *allocate(void *unused) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    for (size_t j = 0; j < EACH; j++) {
      blocks[i][j] = MUST(malloc(tier_sizes[i]));
      stamp_write(blocks[i][j], tier_sizes[i], i * EACH + j);
    }
  }
  return unused;
}

static void *release(void *unused) {
  for (size_t j = EACH; j-- > 0;) {
    for (size_t i = 0; i < TIER_SIZES; i++) {
      CHECK(stamp_holds(blocks[i][j], tier_sizes[i], i * EACH + j));
      free(blocks[i][j]);
    }
  }
  return unused;
}

int main(void) {
  size_t warm_bytes = 0, live_bytes = 0;
  for (size_t i = 0; i < TIER_SIZES; i++) live_bytes += EACH * tier_sizes[i];
  for (int round = 0; round < ROUNDS; round++) {
    thread_run(allocate, NULL);
    if (round % 2 == 0) {
      thread_run(release, NULL);
    } else {
      release(NULL);
    }
    if (round == WARM_UP) warm_bytes = rss_bytes();
  }
  size_t end_bytes = rss_bytes();
  CHECK_MSG(end_bytes < warm_bytes + live_bytes / 2, "from %zu to %zu", warm_bytes, end_bytes);
  return 0;
}
