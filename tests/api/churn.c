/* Blocks of every tier, taken and given back: something for options and reports to work on. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

enum { BLOCKS = 64 };

int main(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    void *blocks[BLOCKS];
    for (size_t j = 0; j < BLOCKS; j++) {
      blocks[j] = MUST(malloc(tier_sizes[i]));
      stamp_write(blocks[j], tier_sizes[i] < 4096 ? tier_sizes[i] : 4096, j);
    }
    for (size_t j = 0; j < BLOCKS; j++) {
      CHECK(stamp_holds(blocks[j], tier_sizes[i] < 4096 ? tier_sizes[i] : 4096, j));
      free(blocks[j]);
    }
  }
  puts("done");
  return 0;
}
