/* realloc(p, 0) frees p and returns NULL, errno untouched, as in glibc; realloc(NULL, n) is
 * malloc. */
#include "api/check.h"
#include "api/sizes.h"
#include "memory/rss.h"

enum { ROUNDS = 20000 }; /* 160 MiB of touched pages, were the blocks not freed */

int main(void) {
  size_t start_bytes = rss_bytes();
  for (size_t i = 0; i < TIER_SIZES; i++) {
    void *block = realloc(NULL, tier_sizes[i]);
    CHECK(block != NULL && malloc_usable_size(block) >= tier_sizes[i]);
    errno = 0;
    CHECK(realloc(block, 0) == NULL);
    CHECK(errno == 0);
  }
  void *block = MUST(realloc(NULL, 0));
  free(block);
  for (int i = 0; i < ROUNDS; i++) {
    char *first = malloc(100 * KIB), *second = malloc(2 * MIB);
    CHECK(first != NULL && second != NULL);
    first[0] = second[0] = 1;
    CHECK(realloc(first, 0) == NULL);
    CHECK(reallocarray(second, 0, 8) == NULL);
  }
  CHECK(rss_bytes() < start_bytes + 32 * MIB);
  return 0;
}
