/* The process has as many mappings as it may have (vm.max_map_count), or argv[1] fewer.  Nothing
 * crashes: a request is served or refused with ENOMEM, and what is freed goes back; once there are
 * mappings again, all works. */
#include <sys/mman.h>

#include "api/sizes.h"
#include "failure/chain.h"
#include "memory/rss.h"

enum { BLOCKS = 600, ROUNDS = 3 };

static size_t page_bytes;

/* Every other page gets a protection of its own until the kernel refuses. */
static char *exhaust(size_t *bytes) {
  size_t pages = (size_t)1 << 20;
  char *region = mmap(NULL, *bytes = pages * page_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(region != MAP_FAILED);
  for (size_t page = 1; page < pages; page += 2) {
    if (mprotect(region + page * page_bytes, page_bytes, PROT_READ) != 0) {
      CHECK(errno == ENOMEM);
      return region;
    }
  }
  munmap(region, *bytes);
  return NULL; /* a limit so high that no program meets it */
}

static void leave(char *region, size_t mappings) {
  for (size_t pair = 0; pair < mappings / 2; pair++)
    CHECK(mprotect(region + (2 * pair + 1) * page_bytes, page_bytes, PROT_NONE) == 0);
}

static const size_t sizes[] = {24,        700,       5000,    30000,   100 * KIB,
                               300 * KIB, 700 * KIB, 2 * MIB, 5 * MIB, 9 * MIB};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };
static unsigned char *blocks[BLOCKS];

static size_t size_of(size_t index) { return sizes[index % SIZE_COUNT]; }

/* Fills what is not there; touches both ends. */
static size_t allocate(void) {
  size_t refused = 0;
  for (size_t i = 0; i < BLOCKS; i++) {
    if (blocks[i] != NULL) continue;
    errno = 0;
    blocks[i] = malloc(size_of(i));
    if (blocks[i] == NULL) {
      CHECK(errno == ENOMEM);
      refused++;
    } else {
      blocks[i][0] = blocks[i][size_of(i) - 1] = (unsigned char)i;
    }
  }
  return refused;
}

static void grow_some(void) {
  for (size_t i = 0; i < BLOCKS; i += 7) {
    if (blocks[i] == NULL) continue;
    unsigned char *grown = realloc(blocks[i], size_of(i) * 2);
    if (grown != NULL) blocks[i] = grown;
    CHECK(blocks[i][0] == (unsigned char)i && blocks[i][size_of(i) - 1] == (unsigned char)i);
  }
}

static void release(size_t every) {
  for (size_t i = 0; i < BLOCKS; i += every) {
    if (blocks[i] == NULL) continue;
    CHECK(blocks[i][0] == (unsigned char)i && blocks[i][size_of(i) - 1] == (unsigned char)i);
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

/* For each size there is one block before the mappings run out, so that what is refused is not the
 * beginning. */
int main(int argc, char **argv) {
  CHECK(argc == 2);
  page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  size_t region_bytes;
  for (size_t i = 0; i < SIZE_COUNT; i++) free(malloc(sizes[i]));
  char *region = exhaust(&region_bytes);
  if (region == NULL) return 77;
  leave(region, strtoul(argv[1], NULL, 10));
  for (int round = 0; round < ROUNDS; round++) {
    allocate();
    grow_some();
    release(2); /* holes everywhere: to give those back by unmapping would need more mappings */
    CHECK(malloc((size_t)1 << 45) == NULL && errno == ENOMEM);
    allocate();
    grow_some();
    release(1);
    malloc_trim(0);
    CHECK_MSG(rss_bytes() < 40 * MIB, "round %d: %zu KiB resident", round, rss_bytes() / KIB);
  }
  CHECK(munmap(region, region_bytes) == 0);
  CHECK(allocate() == 0);
  release(1);
  malloc_trim(0);
  CHECK_MSG(rss_bytes() < 40 * MIB, "in the end: %zu KiB resident", rss_bytes() / KIB);
  return 0;
}
