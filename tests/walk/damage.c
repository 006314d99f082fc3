/* Damages its heap in the way that its first argument names, prints the address of the damaged block, and
 * waits.  With a second argument it does so in the arena of a thread. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 4000, SIZE = 0x88, LARGE = 3000, FIRST_CACHED = 7, MANY = 160000 };

static char *blocks[COUNT];
static const char *way;

static int is(const char *name) { return strcmp(way, name) == 0; }

static char *volatile last[16];

static void *take(size_t size) { return memset(malloc(size), 'b', size); }

/* Seven blocks of this size go to the thread cache. */
static void fill_cache(size_t size) {
  for (int i = 0; i < FIRST_CACHED; ++i) last[i] = take(size);
  for (int i = 0; i < FIRST_CACHED; ++i) free(last[i]);
}

static char *in_fastbin(size_t size, char **second) {
  char *first = take(size);
  *second = take(size);
  fill_cache(size);
  free(first);
  free(*second);
  return first;
}

/* The link of one of many in a list, in no order, leads to one of another list. */
static char *in_long_fastbin(void) {
  static char *volatile many[MANY];
  for (int i = 0; i < MANY; ++i) many[i] = take(40);
  char *other, *first = in_fastbin(56, &other);
  fill_cache(40);
  for (int i = 0; i < MANY; ++i) free(many[i * 7919L % MANY]);
  char *at = many[MANY / 4 * 7919L % MANY], *next = many[(MANY / 4 - 1) * 7919L % MANY];
  *(volatile uintptr_t *)at ^= (uintptr_t)(next - 16) ^ (uintptr_t)(first - 16);
  return at;
}

static char *damage(void) {
  char *at = blocks[COUNT / 2], *second;
  if (is("healthy")) return at;
  if (is("overflow-1")) return memset(blocks[COUNT / 2 - 1], 'A', SIZE + 1), at;
  if (is("overflow-0")) return blocks[COUNT / 2 - 1][SIZE] = 0, at; /* an off-by-one zero */
  if (is("overflow-16")) return memset(blocks[COUNT / 2 - 1], 'A', SIZE + 16), at;
  if (is("shrunk")) { /* from 0x191 to 0x141, into the block */
    for (int i = 0; i < 3; ++i) last[i] = take(0x188);
    return last[0][0x188] = 'A', last[1];
  }
  if (is("overflow-top")) return memset(last[15], 'A', SIZE + 16), last[15] + SIZE + 8;
  if (is("free-links")) {
    char *large = take(LARGE);
    take(64);
    free(large);
    return memset(large, 'A', 16), large;
  }
  if (is("free-bk")) {
    char *large = take(LARGE);
    take(64);
    free(large);
    return memcpy(large + 8, &blocks[7], 8), large; /* into the heap, to a wrong place */
  }
  if (is("tcache-next")) {
    char *first = take(SIZE);
    second = take(SIZE);
    free(first), free(second);
    return memset(second, 'A', 8), second;
  }
  if (is("tcache-twice")) {
    char *first = take(SIZE);
    free(first);
    memset(first + 8, 0, 8); /* the key */
    return free(first), first;
  }
  if (is("fastbin-far")) return in_long_fastbin();
  char *first = in_fastbin(40, &second);
  if (is("fastbin-next")) return memset(second, 'A', 8), second;
  if (is("fastbin-twice")) return free(first), first;
  abort();
}

static void *run(void *unused) {
  for (int i = 0; i < COUNT; ++i) blocks[i] = take(SIZE);
  last[15] = take(SIZE);
  printf("%ju\n", (uintmax_t)(uintptr_t)damage());
  fflush(stdout);
  for (;;) pause();
  return unused;
}

int main(int argc, char **argv) {
  static char buffer[4096];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  if (argc < 2) return 2;
  way = argv[1];
  if (argc == 2) run(NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) != 0) return 3;
  return pthread_join(thread, NULL);
}
