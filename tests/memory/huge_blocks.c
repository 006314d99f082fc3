/* Blocks much larger than the machine's memory, of which a few pages are used: what they cost is
 * what is touched, in memory and in page faults (which stand for the time), whatever is done with
 * them.  argv[1] says what. */
#include "concurrency/threads.h"
#include "memory/blocks.h"
#include "memory/pages.h"
#include "ways.h"

/* TOUCHED pages cost that many faults, page tables and two pages of maps at most; hakmem has
 * MIB_MORE and FAULTS_MORE. */
enum { TOUCHED = 16, FAULTS_MORE = 64, MIB_MORE = 1 };
enum { BLOCKS = 18, THREADS = 4, ROUNDS = 200 };
static const size_t huge = 500 * GIB;

static size_t place_of(size_t index, size_t bytes) { return bytes / TOUCHED * index + index; }

static void touch(char *block, size_t bytes) {
  CHECK(block != NULL);
  for (size_t i = 0; i < TOUCHED; i++) block[place_of(i, bytes)] = (char)(i + 1);
}

static void require_touched(const char *block, size_t bytes, size_t until) {
  for (size_t i = 0; i < TOUCHED && place_of(i, bytes) < until; i++)
    CHECK(block[place_of(i, bytes)] == (char)(i + 1));
}

static size_t start_bytes, start_faults, counted;

static void start(void) {
  free(malloc(1 << 20));
  rss_bytes();
  start_bytes = rss_bytes();
  start_faults = faults();
  counted = 0;
}

/* What `count` such blocks may have cost since the start. */
static void require_little(size_t count) {
  size_t mib = rss_above_mib(start_bytes), more = faults() - start_faults;
  size_t limit_mib = count * MIB_MORE + more_for_pages(count * (TOUCHED + 2)) / MIB;
  counted = count;
  CHECK_MSG(mib <= limit_mib, "%zu MiB for %zu blocks", mib, count);
  CHECK_MSG(more <= count * (TOUCHED + FAULTS_MORE), "%zu page faults for %zu blocks", more, count);
}

/* But for the pages of maps. */
static void require_all_back(void) {
  malloc_trim(0);
  size_t left_mib = rss_above_mib(start_bytes), limit_mib = more_for_pages(2 * counted) / MIB;
  CHECK_MSG(left_mib <= limit_mib, "%zu MiB stay", left_mib);
}

WAY(taken_and_freed) {
  for (size_t round = 1; round <= 20; round++) {
    char *block = malloc(huge);
    touch(block, huge);
    CHECK(malloc_usable_size(block) >= huge);
    require_touched(block, huge, huge);
    require_little(round);
    free(block);
  }
  require_all_back();
}

/* It reads as zero, and nobody writes zeros to find out: not to what was freed just now either. */
WAY(zeroed) {
  for (size_t round = 1; round <= 20; round++) {
    char *block = MUST(calloc(huge / 8, 8));
    for (size_t i = 0; i < TOUCHED; i++) CHECK(block[place_of(i, huge)] == 0);
    touch(block, huge);
    require_little(round);
    free(block);
  }
  require_all_back();
}

/* As much as lives may wait to be used again: then it is what is cleared. */
WAY(zeroed_while_another_lives) {
  char *other = malloc(huge + 20 * GIB), *block = malloc(400 * GIB);
  touch(other, huge);
  touch(block, 400 * GIB);
  free(block);
  block = MUST(calloc(400 * GIB, 1));
  for (size_t i = 0; i < TOUCHED; i++) CHECK(block[place_of(i, 400 * GIB)] == 0);
  require_touched(other, huge, huge);
  require_little(3);
  free(block);
  free(other);
  require_all_back();
}

/* With HAKMEM_PREFAULT no page of a block is missing, also of one that has been used before. */
WAY(zeroed_and_prefaulted) {
  const size_t bytes = 300 << 20, page = page_bytes();
  char *block = MUST(malloc(bytes));
  memset(block, 7, bytes);
  free(block);
  block = MUST(calloc(bytes, 1));
  size_t before = faults();
  for (size_t at = 0; at < bytes; at += page) {
    CHECK(block[at] == 0);
    block[at] = 7;
  }
  CHECK(faults() - before < FAULTS_MORE);
  free(block);
}

static void *sleep_on(void *unused) {
  (void)unused;
  for (;;) pause();
}

/* In a program with threads what was freed waits for its age. */
WAY(zeroed_beside_a_thread) {
  thread_start(sleep_on, NULL);
  start();
  zeroed();
}

WAY(aligned) {
  for (size_t alignment = MIB; alignment <= 256 * GIB; alignment *= 4) {
    start();
    char *block = aligned_alloc(alignment, 64 * GIB);
    CHECK((size_t)block % alignment == 0);
    touch(block, 64 * GIB);
    require_little(1);
    free(block);
    require_all_back();
  }
}

WAY(resized) {
  static const size_t sizes[] = {600 * GIB, 200 * GIB + 5, 100 * GIB, 300 * GIB, 80 * GIB};
  size_t size = 100 * GIB, least = size;
  char *block = malloc(size);
  touch(block, size);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    char *resized = realloc(block, sizes[i]);
    CHECK(resized != NULL && malloc_usable_size(resized) >= sizes[i]);
    block = resized;
    least = sizes[i] < least ? sizes[i] : least;
    require_touched(block, size, least);
    require_little(2 + 2 * i);
  }
  block = realloc(block, 10 * MIB);
  CHECK(block != NULL && block[place_of(0, size)] == 1 && malloc_usable_size(block) < 11 * MIB);
  block = realloc(block, 100);
  CHECK(block != NULL && block[place_of(0, size)] == 1);
  free(block);
  require_all_back();
}

WAY(many) {
  char *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = malloc(50 * GIB + i * MIB);
    touch(blocks[i], 50 * GIB);
  }
  require_little(BLOCKS);
  for (size_t i = 0; i < BLOCKS; i += 2) free(blocks[i]);
  for (size_t i = 0; i < BLOCKS; i += 2) { /* smaller ones in their places */
    blocks[i] = malloc(20 * GIB);
    touch(blocks[i], 20 * GIB);
  }
  for (size_t i = 1; i < BLOCKS; i += 2) require_touched(blocks[i], 50 * GIB, 50 * GIB);
  require_little(2 * BLOCKS);
  for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
  require_all_back();
}

WAY(forked) {
  char *block = malloc(huge), *other = malloc(200 * GIB);
  touch(block, huge);
  touch(other, 200 * GIB);
  pid_t child = fork();
  if (child == 0) {
    start_faults = faults();
    require_touched(block, huge, huge);
    block = realloc(block, 50 * GIB);
    require_touched(block, huge, 50 * GIB);
    free(other);
    free(block);
    touch(malloc(150 * GIB), 150 * GIB);
    require_little(6);
    _exit(0);
  }
  child_join(child);
  require_touched(block, huge, huge);
  require_touched(other, 200 * GIB, 200 * GIB);
  free(block);
  free(other);
  require_all_back();
}

static void *take_and_free(void *number) {
  size_t bytes = (40 + 7 * (size_t)number) * GIB;
  for (size_t round = 0; round < ROUNDS; round++) {
    char *block = malloc(bytes);
    touch(block, bytes);
    require_touched(block, bytes, bytes);
    char *shrunk = realloc(block, bytes / 3 + round * MIB);
    require_touched(shrunk, bytes, bytes / 3);
    free(shrunk);
  }
  return NULL;
}

WAY(by_threads) {
  threads_run(THREADS, take_and_free);
  CHECK(rss_above_mib(start_bytes) <= 8 * THREADS);
}

WAY(refused) {
  const struct rlimit limit = {200 * GIB, RLIM_INFINITY};
  char *before = malloc(100 * GIB);
  touch(before, 100 * GIB);
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  for (size_t round = 0; round < 10; round++) {
    CHECK_FAILS(malloc(huge), ENOMEM);
    CHECK(realloc(before, huge) == NULL && errno == ENOMEM);
    CHECK(calloc(huge, 1) == NULL && errno == ENOMEM);
  }
  require_touched(before, 100 * GIB, 100 * GIB);
  require_little(1);
  free(before);
  require_all_back();
}

/* Who writes to all of such a block is ended before the machine is. */
static void bound_processor_time(void) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_CPU, &limit) == 0);
  limit.rlim_cur = limit.rlim_max < 8 ? limit.rlim_max : 8;
  CHECK(setrlimit(RLIMIT_CPU, &limit) == 0);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  bound_processor_time();
  start();
  return run_way(arguments[1]) ? 0 : 1;
}
