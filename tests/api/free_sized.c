/* C23's free_sized and free_aligned_sized give blocks of every tier back; NULL is allowed. */
#include "api/check.h"
#include "api/sizes.h"
#include "memory/rss.h"

/* Debian 12's stdlib.h does not declare them yet. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

enum { ROUNDS = 1000 }; /* times 33 sizes: 260 MiB of touched pages, were nothing freed */

int main(void) {
  size_t start_bytes = rss_bytes();
  errno = 1234;
  free_sized(NULL, 100);
  free_aligned_sized(NULL, 64, 100);
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t size = tier_sizes[i];
    for (int round = 0; round < ROUNDS; round++) {
      void *block = malloc(size), *aligned = aligned_alloc(256, size);
      CHECK(block != NULL && aligned != NULL);
      *(char *)block = *(char *)aligned = 1;
      errno = 1234;
      free_sized(block, size);
      free_aligned_sized(aligned, 256, size);
      CHECK(errno == 1234);
    }
  }
  CHECK(rss_bytes() < start_bytes + 64 * MIB);
  return 0;
}
