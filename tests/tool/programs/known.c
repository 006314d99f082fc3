/* Memory of every kind, in amounts that the test knows; then waits for its end. Prints one line
 * "name bytes" per kind and "ready". */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL_COUNT = 100000, SMALL_BYTES = 64 };
enum { HOLED_COUNT = 20000, HOLED_BYTES = 1000 };
enum { MID_COUNT = 200, MID_BYTES = 20000 };
enum { LARGE_COUNT = 50, LARGE_BYTES = 100000 };
enum { CACHED_COUNT = 24, CACHED_BYTES = 700 };
#define MIB ((size_t)1 << 20)
#define BIG_BYTES (64 * MIB)
#define BIG_TOUCHED_BYTES (5 * MIB)
#define READ_ONLY_BYTES (16 * MIB)
#define FREED_LARGE_BYTES (900 * 1024)
#define FREED_RANGE_BYTES (6 * MIB)
#define STACK_BYTES (2 * MIB)
#define BRK_BYTES (1 * MIB)
#define ANONYMOUS_BYTES (4 * MIB)
#define SHARED_BYTES (2 * MIB)

static void *kept[SMALL_COUNT + HOLED_COUNT + MID_COUNT + LARGE_COUNT];
static size_t kept_count;
static volatile char sink;

static void *written(size_t bytes) {
  void *block = malloc(bytes);
  if (!block) abort();
  return memset(block, 0x5a, bytes);
}

static void *keep(void *block) { return kept[kept_count++] = block; }

static void make_live(void) {
  for (int i = 0; i < SMALL_COUNT; i++) keep(written(SMALL_BYTES));
  for (int i = 0; i < LARGE_COUNT; i++) keep(written(LARGE_BYTES));
}

/* Every second block freed: their slabs stay half empty. */
static void make_holes(void) {
  static void *blocks[HOLED_COUNT];
  for (int i = 0; i < HOLED_COUNT; i++) blocks[i] = written(HOLED_BYTES);
  for (int i = 0; i < HOLED_COUNT; i++) {
    if (i % 2)
      free(blocks[i]);
    else
      keep(blocks[i]);
  }
}

/* Live to malloc, but without pages: never written, or only read. */
static void make_untouched(void) {
  for (int i = 0; i < MID_COUNT; i++) keep(malloc(MID_BYTES));
  char *big = malloc(BIG_BYTES), *read_only = calloc(1, READ_ONLY_BYTES);
  if (!big || !read_only) abort();
  memset(big, 1, BIG_TOUCHED_BYTES);
  for (size_t at = 0; at < READ_ONLY_BYTES; at += 4096) sink = read_only[at];
}

/* A Large block is kept whole for the next of its class; a Big one is free to be split and
 * merged. */
static void make_freed(void) {
  void *once = written(FREED_RANGE_BYTES);
  free(written(FREED_LARGE_BYTES));
  free(once);
}

static void make_other(void) {
  char *heap = sbrk(BRK_BYTES);
  if (heap == (void *)-1) abort();
  memset(heap, 1, BRK_BYTES);
  void *anonymous =
      mmap(NULL, ANONYMOUS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void *shared =
      mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (anonymous == MAP_FAILED || shared == MAP_FAILED) abort();
  memset(anonymous, 1, ANONYMOUS_BYTES);
  memset(shared, 1, SHARED_BYTES);
}

/* Blocks that stay in this thread's magazine: nothing is asked for afterwards that it would give
 * them up for. */
static void make_cached(void) {
  void *blocks[CACHED_COUNT];
  for (int i = 0; i < CACHED_COUNT; i++) blocks[i] = written(CACHED_BYTES);
  for (int i = 0; i < CACHED_COUNT; i++) free(blocks[i]);
}

static pthread_barrier_t are_ready;

/* A deep stack, and cached blocks. */
static void *other_thread(void *unused) {
  volatile char deep[STACK_BYTES];
  for (size_t at = 0; at < STACK_BYTES; at += 1024) deep[at] = 1;
  sink = deep[0];
  for (int i = 0; i < 224; i++) free(malloc(112)); /* beyond 512 calls it has a heap */
  make_cached();
  make_cached();
  pthread_barrier_wait(&are_ready);
  for (;;) pause();
  return unused;
}

int main(void) {
  pthread_t thread;
  make_live();
  make_holes();
  make_untouched();
  make_freed();
  make_other();
  make_cached();
  pthread_barrier_init(&are_ready, NULL, 2);
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_barrier_wait(&are_ready);
  printf("small %d\n", SMALL_COUNT * SMALL_BYTES);
  printf("holed_live %d\n", HOLED_COUNT / 2 * HOLED_BYTES);
  printf("holed_free %d\n", HOLED_COUNT / 2 * 1024);
  printf("large %d\n", LARGE_COUNT * LARGE_BYTES);
  printf("untouched_mid %d\n", MID_COUNT * 20480);
  printf("cached %d\n", CACHED_COUNT * 768);
  printf("big_touched %zu\n", BIG_TOUCHED_BYTES);
  printf("large_freed %zu\n", (size_t)FREED_LARGE_BYTES);
  printf("range_freed %zu\n", FREED_RANGE_BYTES);
  printf("stack %zu\n", STACK_BYTES);
  printf("brk %zu\n", BRK_BYTES);
  printf("anonymous %zu\n", ANONYMOUS_BYTES);
  printf("shared %zu\n", SHARED_BYTES);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
