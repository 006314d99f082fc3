/* realloc keeps the smaller size's content between any two sizes, in any tier, both ways. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

static void between(size_t from, size_t to) {
  uint64_t seed = from * 31 + to;
  void *block = MUST(malloc(from));
  stamp_write(block, from, seed);
  block = realloc(block, to);
  CHECK_MSG(block != NULL, "%zu to %zu", from, to);
  CHECK_MSG(malloc_usable_size(block) >= to, "%zu to %zu", from, to);
  CHECK_MSG((uintptr_t)block % (to <= 8 ? 8 : 16) == 0, "%zu to %zu", from, to);
  CHECK_MSG(stamp_holds(block, from < to ? from : to, seed), "%zu to %zu", from, to);
  stamp_write(block, to, seed); /* the new part can be written ... */
  CHECK(stamp_holds(block, to, seed));
  free(block);
}

/* A block of an aligned allocation is reallocated like any other (its alignment may be lost). */
static void from_aligned(size_t alignment, size_t from, size_t to) {
  void *block = MUST(aligned_alloc(alignment, from));
  stamp_write(block, from, alignment);
  block = MUST(realloc(block, to));
  CHECK(stamp_holds(block, from < to ? from : to, alignment));
  free(block);
}

/* Growth by small steps, as a string that is appended to, and back. */
static void staircase(void) {
  char *block = NULL;
  size_t last_bytes = 0;
  for (size_t bytes = 1; bytes < 12 * MIB; bytes += bytes / 3 + 1) {
    block = realloc(block, bytes);
    CHECK(block != NULL && stamp_holds(block, last_bytes, 7));
    stamp_write(block, bytes, 7);
    last_bytes = bytes;
  }
  while (last_bytes > 1) {
    last_bytes = last_bytes * 2 / 3;
    block = realloc(block, last_bytes);
    CHECK(block != NULL && stamp_holds(block, last_bytes, 7));
  }
  free(block);
}

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    for (size_t j = 0; j < TIER_SIZES; j++) between(tier_sizes[i], tier_sizes[j]);
    for (size_t alignment = 32; alignment <= 4 * MIB; alignment *= 16) {
      from_aligned(alignment, tier_sizes[i], 3 * tier_sizes[i]);
      from_aligned(alignment, tier_sizes[i], tier_sizes[i] / 3 + 1);
    }
  }
  staircase();
  return 0;
}
