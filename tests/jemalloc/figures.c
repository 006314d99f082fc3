/* Figures: those of all blocks that the program holds, by bin, and in arenas of its own; jemalloc's
 * table of classes; a report as text and as JSON. */
#include <pthread.h>

#include "jemalloc/mallctl.h"

enum { BLOCKS = 20000, BINS = 39 };
static void *blocks[BLOCKS];

static void check_near(size_t one, size_t other, size_t slack) {
  size_t most = one > other ? one : other, difference = most - (one < other ? one : other);
  CHECK_MSG(difference <= most / 100 + slack, "%zu, %zu", one, other);
}

static void check_classes(void) {
  size_t size = 0, step = 8;
  CHECK(GET("arenas.nbins", unsigned) == BINS && GET("arenas.quantum", size_t) == 8);
  for (size_t class = 0; class < BINS + 20; class ++) {
    if (class >= 8 && (class - 8) % 4 == 0) step *= 2;
    size += step;
    size_t said = class < BINS ? number_of("arenas.bin.%zu.size", class, 0)
                               : number_of("arenas.lextent.%zu.size", class - BINS, 0);
    CHECK_MSG(said == size, "class %zu: %zu, not %zu", class, said, size);
  }
}

static size_t hold(size_t largest, int flags) {
  size_t held = 0;
  for (size_t at = 0; at < BLOCKS; at++) {
    size_t size = 1 + at * 7919 % largest;
    blocks[at] = MUST(mallocx(at % 500 ? size : 50 * size, flags));
    memset(blocks[at], 1, sallocx(blocks[at], 0));
    held += sallocx(blocks[at], 0);
  }
  return held;
}

static void let_go(int flags) {
  for (size_t at = 0; at < BLOCKS; at++) dallocx(blocks[at], flags);
}

/* How much stats.allocated and the like grow by blocks of up to this size. */
static void check_growth(size_t largest, int flags, size_t arena) {
  advance_epoch();
  size_t all = GET("stats.allocated", size_t);
  size_t small = number_of("stats.arenas.%zu.small.allocated", arena, 0);
  size_t large = number_of("stats.arenas.%zu.large.allocated", arena, 0);
  size_t held = hold(largest, flags);
  advance_epoch();
  check_near(GET("stats.allocated", size_t) - all, held, 65536);
  small = number_of("stats.arenas.%zu.small.allocated", arena, 0) - small;
  large = number_of("stats.arenas.%zu.large.allocated", arena, 0) - large;
  check_near(small + large, held, 65536);
  size_t in_bins = 0, active = GET("stats.active", size_t);
  for (size_t bin = 0; bin < BINS; bin++) {
    size_t size = number_of("arenas.bin.%zu.size", bin, 0);
    size_t regions = number_of("stats.arenas.%zu.bins.%zu.curregs", ALL_ARENAS, bin);
    size_t slabs = number_of("stats.arenas.%zu.bins.%zu.curslabs", ALL_ARENAS, bin);
    size_t bytes = number_of("arenas.bin.%zu.slab_size", bin, 0);
    CHECK(regions * size <= slabs * bytes);
    CHECK(number_of("stats.arenas.%zu.bins.%zu.nonfull_slabs", ALL_ARENAS, bin) <= slabs);
    in_bins += regions * size;
  }
  check_near(in_bins, number_of("stats.arenas.%zu.small.allocated", ALL_ARENAS, 0), 65536);
  CHECK(GET("stats.allocated", size_t) <= active && active <= GET("stats.resident", size_t));
  CHECK(active <= GET("stats.mapped", size_t));
  let_go(flags);
  advance_epoch();
  check_near(GET("stats.allocated", size_t), all, 65536);
}

static void *free_all(void *unused) {
  let_go(0);
  return unused;
}

/* Blocks that another thread has freed are free, though their slabs do not know yet. */
static void check_freed_remotely(void) {
  pthread_t other;
  advance_epoch();
  size_t all = GET("stats.allocated", size_t);
  hold(900, 0);
  CHECK(pthread_create(&other, NULL, free_all, NULL) == 0 && pthread_join(other, NULL) == 0);
  advance_epoch();
  check_near(GET("stats.allocated", size_t), all, 65536);
}

static size_t slabs_of(size_t bin) {
  advance_epoch();
  return number_of("stats.arenas.%zu.bins.%zu.curslabs", ALL_ARENAS, bin);
}

/* Room that never held a block hides little: a program would try to move the few blocks. */
static void check_hardly_used(void) {
  for (size_t bin = 0; bin < BINS; bin++) {
    size_t size = number_of("arenas.bin.%zu.size", bin, 0);
    void *block = MUST(malloc(size));
    size_t bytes = slabs_of(bin) * number_of("arenas.bin.%zu.slab_size", bin, 0);
    size_t regions = number_of("stats.arenas.%zu.bins.%zu.curregs", ALL_ARENAS, bin);
    CHECK_MSG(bytes - regions * size <= 16384 + 3 * size, "bin %zu: %zu", bin, bytes);
    free(block);
  }
}

/* Slabs are there while pages of theirs have a block here and there, and no longer when whole pages
 * are free and given back. */
static void check_sparse(void) {
  enum { BIN = 12, SIZE = 160, PER_PAGE = 10, PER_SLABS = 1000 };
  for (size_t at = 0; at < BLOCKS; at++) blocks[at] = MUST(malloc(SIZE));
  size_t slabs = slabs_of(BIN);
  for (size_t at = 0; at < BLOCKS; at++)
    if (at % PER_PAGE) free(blocks[at]);
  ACT("thread.tcache.flush");
  ACT("arena.0.purge");
  CHECK_MSG(slabs_of(BIN) > slabs * 3 / 4, "%zu of %zu", slabs_of(BIN), slabs);
  for (size_t at = 0; at < BLOCKS; at += PER_PAGE)
    if (at % PER_SLABS) free(blocks[at]);
  ACT("thread.tcache.flush");
  ACT("arena.0.purge");
  CHECK_MSG(slabs_of(BIN) < slabs / 4, "%zu of %zu", slabs_of(BIN), slabs);
  for (size_t at = 0; at < BLOCKS; at += PER_SLABS) free(blocks[at]);
}

/* Nor does a block that the thread has cached keep one, while the program looks for blocks to
 * move. */
static void check_cached(void) {
  enum { BIN = 15, SIZE = 256 };
  size_t fields[3], bytes = sizeof fields;
  for (size_t at = 0; at < BLOCKS; at++) blocks[at] = MUST(malloc(SIZE));
  for (size_t at = 0; at < BLOCKS; at++) free(blocks[at * 7919 % BLOCKS]);
  CHECK(mallctl("experimental.utilization.batch_query", fields, &bytes, blocks, 8) == 0);
  CHECK_MSG(slabs_of(BIN) < 10, "%zu", slabs_of(BIN));
}

static size_t written;
static void count(void *argument, const char *text) {
  CHECK(argument == &written);
  written += strlen(text);
}

int main(int argc, char **argv) {
  if (argc > 1) return hold(900, 0), malloc_stats_print(NULL, NULL, argv[1]), 0;
  check_classes();
  check_hardly_used();
  check_sparse();
  check_cached();
  check_growth(900, 0, ALL_ARENAS);
  check_growth(60000, 0, 0);
  check_freed_remotely();
  unsigned arena = GET("arenas.create", unsigned);
  check_growth(3000, ARENA(arena), arena);
  check_growth(900, NO_CACHE, ALL_ARENAS);
  malloc_stats_print(count, &written, NULL);
  CHECK(written > 1000);
  return 0;
}
