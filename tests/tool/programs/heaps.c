/* heaps.c: three heaps of the program's own and a name for a thread's, in steps.  The line after
 * "made" has addresses: of a live block and a freed one of a slab, and of a live range, all of the
 * first heap; and of a block of the thread's. */
#include <stdio.h>
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "steps.h"

enum { SMALL = 1000, SMALL_BYTES = 100, RANGES = 5, RANGE_BYTES = 200000 };
enum { SESSION_BYTES = 4096 - 8 }; /* 4096 with the trailer of hardened mode, and without */

static void *small[SMALL], *ranges[RANGES];

static void fill(hak_heap *cache) {
  for (unsigned block = 0; block < SMALL; block++) {
    small[block] = hak_heap_malloc(cache, SMALL_BYTES);
    memset(small[block], 1, SMALL_BYTES);
  }
  for (unsigned block = 0; block < RANGES; block++) {
    ranges[block] = hak_heap_malloc(cache, RANGE_BYTES);
    memset(ranges[block], 1, RANGE_BYTES);
  }
}

/* Until the limit refuses, and twice more. */
static void fill_up(hak_heap *sessions) {
  while (hak_heap_malloc(sessions, SESSION_BYTES)) continue;
  if (hak_heap_malloc(sessions, SESSION_BYTES) || hak_heap_malloc(sessions, 10 << 20)) _exit(2);
}

static void say_addresses(void *of_thread) {
  char line[128];
  int length =
      snprintf(line, sizeof line, "%p %p %p %p\n", small[0], small[1], ranges[0], of_thread);
  if (write(1, line, (size_t)length) < 0) _exit(1);
}

static void make_many(unsigned count) {
  char name[32];
  for (unsigned heap = 0; heap < count; heap++) {
    snprintf(name, sizeof name, "request %u", heap);
    hak_heap_malloc(hak_heap_new(name), 48);
  }
}

int main(int count, char **arguments) {
  step("begun");
  hak_heap *cache = hak_heap_new("cache"), *sessions = hak_heap_new("ses\nsions\xFF"),
           *empty = hak_heap_new(NULL);
  hak_heap_set_tag(cache, 7);
  hak_set_limit(sessions, 1 << 20);
  hak_heap_set_name(hak_heap_of_thread(), "main loop");
  hak_heap_set_tag(hak_heap_of_thread(), 42);
  void *of_thread = malloc(48);
  fill(cache);
  free(small[1]);
  fill_up(sessions);
  hak_heap_malloc(empty, 48);
  hak_heap_free_all(empty);
  if (count > 1) make_many((unsigned)atoi(arguments[1]));
  step("made");
  say_addresses(of_thread);
  step("told");
  hak_heap_destroy(cache);
  hak_heap *next = hak_heap_new("cache");
  hak_heap_malloc(next, SMALL_BYTES);
  step("again");
  return 0;
}
