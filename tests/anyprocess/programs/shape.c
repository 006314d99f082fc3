/* shape KIND: a heap of glibc's malloc whose parts are known.  Prints "NAME BYTES" of some, then "ready".  At
 * the first line of input it calls malloc_trim(0), and prints "trimmed". */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL = 400000, SMALL_BYTES = 104, KEPT_OF = 8, LARGE = 30000, LARGE_BYTES = 1000 };
enum { THREADS = 12, OF_THREAD = 3000, BIG = 24, BIG_BYTES = 1 << 20, PLAIN = 50000 };
enum { TALL = 1600, TALL_BYTES = 100000, TALL_TOUCHED_FROM = 1350 };
enum { HEAP_BYTES = 64 << 20, PAGE = 4096 };

static void *kept[SMALL];
static pthread_barrier_t begun, filled;

static void *made(size_t bytes) {
  void *block = malloc(bytes);
  if (!block) abort();
  return memset(block, 1, bytes);
}

/* One thread, all of it live. */
static void plain(void) {
  size_t live = 0;
  for (unsigned i = 0; i < PLAIN; ++i) {
    size_t bytes = i % 50 == 0 ? 5000 : 24 + i % 97;
    kept[i] = made(bytes);
    live += bytes;
  }
  printf("live %zu\n", live);
}

/* No page without a live chunk. */
static void fragmented(void) {
  for (unsigned i = 0; i < SMALL; ++i) kept[i] = made(SMALL_BYTES);
  for (unsigned i = 0; i < SMALL; ++i)
    if (i % KEPT_OF) free(kept[i]);
  /* The first ones went to the thread cache. */
  printf("cached %zu\nfreed %zu\n", (size_t)kept[1], (size_t)kept[SMALL / 2 + 1]);
  printf("pinned %zu\n", (size_t)SMALL / KEPT_OF * (KEPT_OF - 1) * (SMALL_BYTES + 8));
}

static void freed(void) {
  for (unsigned i = 0; i < LARGE; ++i) kept[i] = made(LARGE_BYTES);
  for (unsigned i = 0; i < LARGE; ++i) free(kept[i]);
  printf("free %zu\n", (size_t)LARGE * (LARGE_BYTES + 8));
}

/* Freed at the heap's end, and kept there. */
static void top(void) {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  freed();
}

/* Freed below a live chunk. */
static void whole(void) {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (unsigned i = 0; i < LARGE; ++i) kept[i] = made(LARGE_BYTES);
  for (unsigned i = 0; i + 1 < LARGE; ++i) free(kept[i]);
  printf("free %zu\n", (size_t)LARGE * (LARGE_BYTES + 8));
}

/* Some of each. */
static void mixed(void) {
  unsigned seed = 1;
  for (unsigned i = 0; i < PLAIN; ++i) {
    seed = seed * 1664525 + 1013904223;
    kept[i] = made(seed >> 24 < 250 ? seed >> 22 : seed >> 14);
  }
  for (unsigned i = 0; i < PLAIN; ++i) {
    seed = seed * 1664525 + 1013904223;
    if (i / 100 % 3 == 0 || seed >> 31) free(kept[i]);
  }
}

static void *of_thread(void *unused) {
  void *own[OF_THREAD];
  pthread_barrier_wait(&begun);
  for (unsigned i = 0; i < OF_THREAD; ++i) own[i] = made(LARGE_BYTES);
  pthread_barrier_wait(&filled);
  for (unsigned i = 0; i + 1 < OF_THREAD; ++i) free(own[i]);
  kept[0] = own[OF_THREAD - 1];
  return unused;
}

/* An arena for each thread, and the threads have ended. */
static void arenas(void) {
  pthread_t threads[THREADS];
  mallopt(M_ARENA_MAX, THREADS + 1);
  pthread_barrier_init(&begun, NULL, THREADS);
  pthread_barrier_init(&filled, NULL, THREADS);
  for (unsigned i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], NULL, of_thread, NULL)) abort();
  for (unsigned i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  printf("arenas %d\nfree %zu\n", THREADS + 1,
         (size_t)THREADS * (OF_THREAD - 1) * (LARGE_BYTES + 8));
}

/* A thread's heap lies behind a mapped file, as the zeroed data of libraries do. */
static void behind(void) {
  arenas();
  char *heap = (char *)((uintptr_t)kept[0] & ~(uintptr_t)(HEAP_BYTES - 1));
  int file = open("/proc/self/exe", O_RDONLY), rights = PROT_READ | PROT_WRITE;
  if (mmap(heap - PAGE, PAGE, rights, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED) abort();
}

static void *waits(void *unused) {
  pthread_barrier_wait(&begun);
  for (;;) pause();
  return unused;
}

static void begin(void *(*run)(void *)) {
  pthread_t thread;
  pthread_barrier_init(&begun, NULL, 2);
  if (pthread_create(&thread, NULL, run, NULL)) abort();
  pthread_barrier_wait(&begun);
}

/* Heaps side by side: little of one of them is unused, as before a stack.  A header makes a page resident. */
static void *fills_heaps(void *unused) {
  for (unsigned i = 0; i < TALL; ++i) {
    kept[i] = malloc(TALL_BYTES);
    if (!kept[i]) abort();
    if (i >= TALL_TOUCHED_FROM) memset(kept[i], 1, TALL_BYTES);
  }
  return waits(unused);
}

static void tall(void) {
  begin(fills_heaps);
  printf("live %zu\n",
         (size_t)(TALL - TALL_TOUCHED_FROM) * TALL_BYTES + (size_t)TALL_TOUCHED_FROM * PAGE);
}

/* A stack lies beside the last of them. */
static void mmapped(void) {
  mallopt(M_MMAP_THRESHOLD, 1 << 17);
  for (unsigned i = 0; i < BIG; ++i) kept[i] = made(BIG_BYTES);
  begin(waits);
  printf("mmapped %zu\n", (size_t)BIG * BIG_BYTES);
}

/* Threads that allocate and free each other's blocks, at full speed. */
static void *hurry(void *number) {
  unsigned seed = (unsigned)(uintptr_t)number;
  for (;;) {
    unsigned kind = seed >> 24;
    seed = seed * 1664525 + 1013904223;
    void *fresh = made(kind == 0 ? seed >> 13 : kind < 16 ? seed >> 17 : seed >> 22);
    free(__atomic_exchange_n(&kept[seed >> 16], fresh, __ATOMIC_ACQ_REL));
  }
  return NULL;
}

static void hurried(void) {
  for (uintptr_t i = 0; i < 8; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, hurry, (void *)(i + 1))) abort();
  }
  usleep(500000);
}

static const struct {
  const char *name;
  void (*make)(void);
} KINDS[] = {{"plain", plain}, {"fragmented", fragmented}, {"top", top},         {"whole", whole},
             {"mixed", mixed}, {"arenas", arenas},         {"mmapped", mmapped}, {"behind", behind},
             {"tall", tall},   {"hurried", hurried}};

int main(int argc, char **argv) {
  char line[16];
  for (unsigned i = 0; argc == 2 && i < sizeof KINDS / sizeof *KINDS; ++i)
    if (strcmp(argv[1], KINDS[i].name) == 0) KINDS[i].make();
  printf("ready\n");
  fflush(stdout);
  if (read(0, line, sizeof line) <= 0) return 0;
  malloc_trim(0);
  printf("trimmed\n");
  fflush(stdout);
  for (;;) pause();
}
