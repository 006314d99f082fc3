/* mallinfo and mallinfo2: what is in use grows and falls with the live bytes, in every tier.  Cached blocks may count. */
#include "api/check.h"
#include "api/sizes.h"

enum { BLOCKS = 16384 };

#define LIVE_BYTES (16 * MIB)

/* glibc counts blocks that have a mapping of their own in hblkhd only. */
static size_t used_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  CHECK(info.arena + info.hblkhd >= info.uordblks);
  CHECK(info.fordblks <= info.arena + info.hblkhd);
  return info.uordblks + info.hblkhd;
}

static size_t used_bytes_int(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  struct mallinfo info = mallinfo();
#pragma GCC diagnostic pop
  return (size_t)(unsigned)info.uordblks + (size_t)(unsigned)info.hblkhd;
}

static void check_tier(size_t size) {
  static void *blocks[BLOCKS];
  size_t count = LIVE_BYTES / size, before = used_bytes(), before_int = used_bytes_int();
  CHECK(count <= BLOCKS);
  for (size_t i = 0; i < count; i++) blocks[i] = MUST(malloc(size));
  size_t during = used_bytes(), during_int = used_bytes_int();
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  size_t after = used_bytes();
  CHECK_MSG(during - before >= LIVE_BYTES * 9 / 10, "size %zu: %zu", size, during - before);
  CHECK_MSG(during - before <= LIVE_BYTES * 5 / 2, "size %zu: %zu", size, during - before);
  CHECK_MSG(during_int - before_int >= LIVE_BYTES * 9 / 10, "size %zu", size);
  CHECK_MSG(after <= before + LIVE_BYTES / 4, "size %zu: from %zu to %zu", size, before, after);
}

int main(void) {
  check_tier(KIB);
  check_tier(16 * KIB);
  check_tier(256 * KIB);
  check_tier(4 * MIB);
  return 0;
}
