/* Blocks of every tier shrink to every smaller tier where no more memory can be had: realloc never
 * fails, whatever refuses. argv[1]: where the blocks are ("malloc", "aligned", "heap": a heap of
 * the program's own, "used": such a heap, in use); argv[2]: what refuses ("limit":
 * HAKMEM_LIMIT_HARD, "space": RLIMIT_AS, "heap": the heap's own limit). */
#include <sys/resource.h>

#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "hakmem/hakmem.h"

enum { STAMP_BYTES = 100, ERRNO_KEPT = 77 };

static const size_t sizes[] = {1,     100,       1000,      3000,    6000,   20000,
                               60000, 100 * KIB, 900 * KIB, 3 * MIB, 9 * MIB};
enum { SIZES = sizeof sizes / sizeof *sizes };

static const char *where;
static hak_heap *heap;

static bool is(const char *what, const char *name) { return strcmp(what, name) == 0; }

static void *take(size_t size) {
  if (is(where, "aligned")) return aligned_alloc(256, size);
  return is(where, "heap") ? hak_heap_malloc(heap, size) : malloc(size);
}

static size_t stamped(size_t size) { return size < STAMP_BYTES ? size : STAMP_BYTES; }

/* Every later request fails, of whatever size: caches are empty. */
static void exhaust(void) {
  for (size_t bytes = 16 * MIB; bytes >= 16; bytes = bytes * 7 / 8)
    while (take(bytes)) {
    }
}

static void refuse(const char *what) {
  if (is(what, "space")) {
    unsigned long pages;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm && fscanf(statm, "%lu", &pages) == 1 && fclose(statm) == 0);
    struct rlimit limit = {pages << 12, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  } else if (is(what, "heap")) {
    CHECK(hak_set_limit(heap, 1));
  }
  if (!is(what, "heap")) exhaust();
}

static void shrink(void *block, size_t from, size_t to) {
  errno = ERRNO_KEPT;
  char *shrunk = realloc(block, to);
  CHECK_MSG(shrunk != NULL, "from %zu to %zu: errno %d", from, to, errno);
  CHECK_MSG(errno == ERRNO_KEPT, "errno %d", errno);
  CHECK(stamp_holds(shrunk, stamped(to), from));
  CHECK(malloc_usable_size(shrunk) >= to);
  if (is(where, "heap") || is(where, "used")) CHECK(hak_heap_of(shrunk) == heap);
  free(shrunk);
  exhaust();
}

int main(int argc, char **argv) {
  static void *blocks[SIZES][SIZES];
  CHECK(argc == 3);
  where = argv[1];
  if (is(where, "heap") || is(where, "used")) CHECK((heap = hak_heap_new("small")));
  if (is(where, "used")) CHECK(hak_heap_use(heap, NULL));
  for (size_t from = 0; from < SIZES; from++)
    for (size_t to = 0; to < from; to++) {
      blocks[from][to] = MUST(take(sizes[from]));
      stamp_write(blocks[from][to], stamped(sizes[from]), sizes[from]);
    }
  refuse(argv[2]);
  for (size_t from = 0; from < SIZES; from++)
    for (size_t to = 0; to < from; to++) shrink(blocks[from][to], sizes[from], sizes[to]);
  return 0;
}
