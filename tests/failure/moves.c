/* A block grows and grows, with neighbours in between, so that its pages move each time: all that
 * was written is there afterwards.  It becomes few mappings, and growing by small steps not many
 * more. */
#include "api/sizes.h"
#include "concurrency/threads.h"
#include "memory/rss.h"

enum { PAGE_BYTES = 4096 };

static uint64_t word_at(size_t page, uint64_t seed) {
  return (page + 1) * 0x9e3779b97f4a7c15u + seed;
}

/* The first and the last word of each page. */
static void write_pages(char *block, size_t from, size_t to, uint64_t seed) {
  for (size_t page = from / PAGE_BYTES; page < to / PAGE_BYTES; page++) {
    uint64_t word = word_at(page, seed);
    memcpy(block + page * PAGE_BYTES, &word, sizeof word);
    memcpy(block + (page + 1) * PAGE_BYTES - sizeof word, &word, sizeof word);
  }
}

static void check_pages(const char *block, size_t bytes, uint64_t seed) {
  for (size_t page = 0; page < bytes / PAGE_BYTES; page++) {
    uint64_t first, last;
    memcpy(&first, block + page * PAGE_BYTES, sizeof first);
    memcpy(&last, block + (page + 1) * PAGE_BYTES - sizeof last, sizeof last);
    CHECK_MSG(first == word_at(page, seed) && last == first, "page %zu of %zu", page,
              bytes / PAGE_BYTES);
  }
}

static size_t mappings(void) {
  size_t lines = 0;
  FILE *maps = MUST(fopen("/proc/self/maps", "re"));
  for (int character; (character = fgetc(maps)) != EOF;) lines += character == '\n';
  fclose(maps);
  return lines;
}

/* A neighbour behind the block: it cannot grow where it is. */
static char *grow(char *block, size_t *bytes, size_t to, uint64_t seed) {
  static void *neighbour;
  free(neighbour);
  neighbour = MUST(malloc(200 * KIB));
  char *grown = MUST(realloc(block, to));
  check_pages(grown, *bytes, seed);
  write_pages(grown, *bytes, to, seed);
  *bytes = to;
  return grown;
}

static void grow_by_halves(uint64_t seed) {
  char *blocks[3] = {NULL};
  size_t bytes[3] = {0};
  size_t before = faults();
  for (size_t to = MIB; to <= 100 * MIB; to += to / 2 / PAGE_BYTES * PAGE_BYTES)
    for (size_t i = 0; i < 3; i++) blocks[i] = grow(blocks[i], &bytes[i], to, seed + i);
  size_t taken = faults() - before, pages = (bytes[0] + bytes[1] + bytes[2]) / PAGE_BYTES;
  CHECK_MSG(taken < pages + pages / 25, "%zu faults for %zu pages", taken, pages); /* no copies */
  for (size_t i = 0; i < 3; i++) {
    check_pages(blocks[i], bytes[i], seed + i);
    free(blocks[i]);
  }
}

static void grow_by_small_steps(void) {
  char *blocks[2] = {NULL};
  size_t bytes[2] = {0}, before = mappings();
  for (size_t to = 6 * MIB; to <= 24 * MIB; to += 68 * KIB)
    for (size_t i = 0; i < 2; i++) blocks[i] = grow(blocks[i], &bytes[i], to, i);
  CHECK_MSG(mappings() < before + 200, "%zu mappings, %zu before", mappings(), before);
  free(blocks[0]);
  free(blocks[1]);
}

int main(void) {
  for (uint64_t seed = 0; seed < 3; seed++) {
    grow_by_halves(seed << 8);
    malloc_trim(0);
  }
  grow_by_small_steps();
  malloc_trim(0);
  return 0;
}
