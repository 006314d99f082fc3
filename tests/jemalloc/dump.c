/* Holds blocks of two functions, frees those of a third, and dumps the profile to the file given,
 * or under the prefix given. */
#include "jemalloc/mallctl.h"

enum { BLOCKS = 20000, KEPT_BYTES = 1000, OTHER_BYTES = 100 };

#define MAKER(name)                                          \
  __attribute__((noinline)) static void *name(size_t size) { \
    return memset(MUST(malloc(size)), 1, size);              \
  }
MAKER(keeper)
MAKER(other)
MAKER(passing)

int main(int argc, char **argv) {
  static void *held[BLOCKS];
  CHECK(argc == 3);
  for (size_t at = 0; at < BLOCKS; at++) {
    held[at] = at % 2 ? keeper(KEPT_BYTES) : other(OTHER_BYTES);
    free(passing(KEPT_BYTES));
  }
  char *prefix = argv[1], *path = argv[2];
  CHECK(mallctl("prof.prefix", NULL, NULL, &prefix, sizeof prefix) == 0);
  CHECK(mallctl("prof.dump", NULL, NULL, &path, sizeof path) == 0);
  ACT("prof.dump");
  CHECK(mallctl("prof.dump", NULL, NULL, &(char *){"/nowhere/at/all"}, sizeof path) == EFAULT);
  CHECK(mallctl("prof.dump", NULL, NULL, &(char *){"/dev/full"}, sizeof path) == EFAULT);
  return 0;
}
