/* Blocks come and go before main, in atexit handlers and in destructors. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

static void *early[TIER_SIZES];
static void *late[TIER_SIZES];

static void allocate(void *blocks[]) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    blocks[i] = MUST(malloc(tier_sizes[i]));
    stamp_write(blocks[i], tier_sizes[i], i);
  }
}

static void release(void *blocks[]) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    CHECK(stamp_holds(blocks[i], tier_sizes[i], i));
    free(blocks[i]);
  }
}

__attribute__((constructor)) static void before_main(void) { allocate(early); }

static void at_exit(void) {
  release(early);
  allocate(early);
}

__attribute__((destructor)) static void after_main(void) {
  release(late);
  release(early);
}

int main(void) {
  atexit(at_exit);
  allocate(late);
  return 0;
}
