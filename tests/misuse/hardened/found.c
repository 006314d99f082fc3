/* found NAME: does one thing wrong that hardened mode finds, or stops by an inaccessible page. */
#include <stdlib.h>

#include "misuse/hide.h"
#include "ways.h"

void free_sized(void *block, size_t size); /* C23 */

static char *take(size_t size) { return hide(malloc(size)); }

static void write_at(volatile char *bytes, ptrdiff_t offset, char byte) { bytes[offset] = byte; }

#define WRITE_PAST(name, size, offset, byte) \
  WAY(name) {                                \
    char *bytes = take(size);                \
    write_at(bytes, offset, byte);           \
    free(bytes);                             \
  }

/* A string's end, one byte behind its block. */
WRITE_PAST(overflow_by_one_zero, 40, 40, 0)
WRITE_PAST(overflow_of_mid, 5000, 5000, 1)
/* Behind a Large block there is room up to the next multiple of 16. */
WRITE_PAST(overflow_within_the_last_word, 100001, 100001, 1)

/* A whole block is overwritten, and its trailer. */
WAY(overflow_by_many) {
  char *bytes = take(100);
  memset(bytes, 7, 112);
  free(bytes);
}

/* Seen when the block grows. */
WAY(overflow_seen_by_realloc) {
  char *bytes = take(100);
  write_at(bytes, 103, 1);
  free(realloc(bytes, 200));
}

/* Found out when the block is used again. */
WAY(write_after_free) {
  char *bytes = take(64);
  free(bytes);
  write_at(bytes, 20, 1);
  for (int i = 0; i < 100000; i++) free(take(64));
}

/* What malloc(0) gave is freed once. */
WAY(double_free_of_nothing) {
  void *nothing = take(0);
  free(nothing);
  free(hide(nothing));
}

WAY(free_sized_by_one) { free_sized(take(100), 99); }

/* ---- inaccessible pages ---------------------------------------------------------------------- */

WAY(crash_behind_large) { write_at(take(100000), 100000, 1); }

/* Where it has grown to, and what it has given up. */
WAY(crash_behind_grown_large) {
  char *bytes = hide(realloc(take(100000), 105000));
  write_at(bytes, 105000 + 4096 + 16, 1);
}
WAY(crash_behind_shrunk_large) {
  char *bytes = hide(realloc(take(200000), 70000));
  write_at(bytes, 70000 + 4096 + 16, 1);
}
/* The block that realloc has moved elsewhere. */
WAY(crash_in_moved_large) {
  char *bytes = take(100000);
  free(hide(realloc(bytes, 50 << 20)));
  write_at(bytes, 5000, 1);
}

/* A page before it there is another one. */
WAY(crash_before_large) {
  char *bytes = take(100000);
  for (ptrdiff_t before = 1; before < 70000; before++) write_at(bytes, -before, 1);
}

WAY(crash_in_freed_large) {
  char *bytes = take(100000);
  free(bytes);
  write_at(bytes, 5000, 1);
}

/* malloc(0) gives an address that nobody may read or write to. */
WAY(crash_read_of_nothing) { (void)*(const volatile char *)take(0); }
WAY(crash_write_to_nothing) { write_at(take(0), 0, 1); }

int main(int count, char **arguments) { return count == 2 && run_way(arguments[1]) ? 0 : 2; }
