/* A program without privilege that locks its memory, of which it may lock 8 MiB: mlockall succeeds,
 * and malloc goes on, as with the C library's.  argv[1]: when it locks, "before" its first block or
 * "after"; argv[2]: the flags of mlockall. */
#include <sys/mman.h>
#include <sys/resource.h>

#include "api/check.h"
#include "api/sizes.h"

enum { NOBODY = 65534 };

static void lock(const char *flags) {
  CHECK_MSG(mlockall((int)strtol(flags, NULL, 0)) == 0, "mlockall: %s", strerror(errno));
}

/* 1 MiB of small blocks and 1 MiB of larger ones: less than half of what the limit leaves. */
static void use_memory(void) {
  static const size_t sizes[] = {16, 100, 1000, 6000, 60000, 200 * KIB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t taken = 0; taken < 340 * KIB; taken += sizes[i]) {
      char *block = malloc(sizes[i]);
      CHECK_MSG(block != NULL, "%zu bytes after %zu", sizes[i], taken);
      memset(block, 1, sizes[i]);
    }
}

int main(int argc, char **argv) {
  struct rlimit limit = {8 * MIB, 8 * MIB};
  CHECK(argc == 3);
  CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  if (geteuid() == 0) CHECK(setreuid(NOBODY, NOBODY) == 0);
  if (strcmp(argv[1], "before") == 0) lock(argv[2]);
  void *volatile first = malloc(100);
  CHECK(first != NULL);
  if (strcmp(argv[1], "after") == 0) lock(argv[2]);
  use_memory();
  return 0;
}
