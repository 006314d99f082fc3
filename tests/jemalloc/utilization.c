/* How full slabs are: by query and batch_query, in regions of jemalloc's bins, as valkey checks
 * them; MALLOCX_TCACHE_NONE moves blocks until slabs are full. */
#include "jemalloc/mallctl.h"

enum { BINS = 39, FREE_REGIONS = 0, REGIONS, BYTES, FIELDS, QUERY_FIELDS = 6, BLOCKS = 20000 };
#define BATCH "experimental.utilization.batch_query"
#define QUERY "experimental.utilization.query"

static void ask(void *block, size_t *fields) {
  size_t bytes = FIELDS * sizeof *fields;
  CHECK(mallctl(BATCH, fields, &bytes, &block, sizeof block) == 0);
}

static void check_bin(size_t size) {
  size_t fields[2 * FIELDS], bytes = sizeof fields, whole[QUERY_FIELDS], whole_bytes = sizeof whole;
  void *blocks[] = {MUST(malloc(size)), NULL};
  CHECK(mallctl(BATCH, fields, &bytes, blocks, sizeof blocks) == 0);
  CHECK(mallctl(QUERY, whole, &whole_bytes, blocks, sizeof *blocks) == 0);
  CHECK(memcmp(whole + 1, fields, FIELDS * sizeof *fields) == 0);
  CHECK(!fields[FIELDS] && !fields[FIELDS + 1] && !fields[FIELDS + 2]);
  size_t region = fields[BYTES] / fields[REGIONS], usable = malloc_usable_size(blocks[0]);
  CHECK_MSG(fields[FREE_REGIONS] < fields[REGIONS] && region >= usable, "%zu", size);
  size_t bin = 0;
  while (bin < BINS && number_of("arenas.bin.%zu.size", bin, 0) != region) bin++;
  CHECK_MSG(usable > 14336 ? fields[REGIONS] == 1 && region == usable : bin < BINS, "%zu", size);
  free(blocks[0]);
}

static void check_refusals(void) {
  void *blocks[2] = {malloc(100), malloc(100)};
  size_t fields[2 * FIELDS], bytes = sizeof fields;
  CHECK(mallctl(BATCH, fields, &bytes, blocks, 0) == EINVAL);
  CHECK(mallctl(BATCH, fields, &bytes, NULL, sizeof blocks) == EINVAL);
  CHECK(mallctl(BATCH, NULL, &bytes, blocks, sizeof blocks) == EINVAL);
  CHECK(mallctl(BATCH, fields, NULL, blocks, sizeof blocks) == EINVAL);
  CHECK(mallctl(BATCH, fields, &bytes, blocks, sizeof blocks - 1) == EINVAL);
  CHECK(mallctl(BATCH, fields, &bytes, blocks, sizeof *blocks) == EINVAL);
  CHECK(mallctl(QUERY, fields, &bytes, blocks, sizeof blocks) == EINVAL);
  CHECK(mallctl(BATCH, fields, &bytes, blocks, sizeof blocks) == 0 && bytes == sizeof fields);
}

/* Every second block of a size goes, and the others move as valkey moves them. */
static void check_moves(size_t size) {
  static char *blocks[BLOCKS];
  size_t fields[FIELDS], sparse[3] = {0};
  for (size_t at = 0; at < BLOCKS; at++) memset(blocks[at] = MUST(malloc(size)), (int)at, size);
  for (size_t at = 0; at < BLOCKS; at += 2) free(blocks[at]);
  for (size_t turn = 0; turn < 3; turn++)
    for (size_t at = 1; at < BLOCKS; at += 2) {
      ask(blocks[at], fields);
      if (fields[FREE_REGIONS] * 30 < fields[REGIONS]) continue;
      sparse[turn]++;
      char *moved = memcpy(MUST(mallocx(size, NO_CACHE)), blocks[at], size);
      sdallocx(blocks[at], size, NO_CACHE);
      blocks[at] = moved;
    }
  for (size_t at = 1; at < BLOCKS; at += 2) {
    for (size_t byte = 0; byte < size; byte++) CHECK(blocks[at][byte] == (char)at);
    free(blocks[at]);
  }
  CHECK_MSG(sparse[0] > BLOCKS / 8 && sparse[2] * 4 < sparse[0], "%zu of %zu", sparse[2], *sparse);
}

int main(void) {
  for (size_t size = 1; size <= 70000; size += 1 + size / 8) check_bin(size);
  check_bin(3 << 20);
  check_refusals();
  check_moves(300);
  check_moves(48);
  check_moves(5000);
  return 0;
}
