/* Aligned blocks that were freed are used again: the last one at once for what fits its usable
 * size, larger ones that lie between live blocks for the most part; on a thread of its own, too. */
#include "concurrency/threads.h"

enum { LARGE = 8 };

static void *aligned(size_t alignment, size_t size) {
  void *block = memalign(alignment, size);
  CHECK_MSG(block != NULL && (uintptr_t)block % alignment == 0, "%p of %zu bytes", block, size);
  return block;
}

static void use_small_again(void) {
  static const size_t kinds[][2] = {{24, 32}, {24, 64}, {128, 128}, {500, 128}, {4000, 4096}};
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    void *first = aligned(kinds[i][1], kinds[i][0]);
    size_t usable_bytes = malloc_usable_size(first);
    free(first);
    void *second = aligned(kinds[i][1], usable_bytes);
    CHECK_MSG(second == first, "%zu bytes at %zu", kinds[i][0], kinds[i][1]);
    free(second);
  }
}

static void use_large_again(void) {
  void *before[LARGE], *after[LARGE], *between[LARGE];
  size_t found = 0;
  for (size_t i = 0; i < LARGE; i++) {
    before[i] = aligned(64, 23450 + i / 2 * 100);
    CHECK((between[i] = malloc(512)) != NULL);
  }
  for (size_t i = 0; i < LARGE; i++) free(before[i]);
  free(malloc(60000));
  for (size_t i = 0; i < LARGE; i++) after[i] = aligned(64, 23450 + i / 2 * 100);
  for (size_t i = 0; i < LARGE; i++)
    for (size_t j = 0; j < LARGE; j++) found += before[i] == after[j];
  CHECK_MSG(found > LARGE / 2, "%zu of %d", found, LARGE);
  for (size_t i = 0; i < LARGE; i++) {
    free(after[i]);
    free(between[i]);
  }
}

static void *body(void *unused) {
  use_small_again();
  use_large_again();
  return unused;
}

int main(void) {
  body(NULL);
  thread_run(body, NULL);
  return 0;
}
