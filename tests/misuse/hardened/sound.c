/* Nothing wrong: all sizes, resized, aligned, cleared, of several threads; and malloc(0), an
 * address of its own. */
#include "concurrency/threads.h"

static void *work(void *unused) {
  static void *_Atomic shared[64];
  for (size_t round = 0; round < 20000; round++) {
    size_t size = (round * 7919) % (round % 100 ? 3000 : 300000);
    size_t alignment = (size_t)16 << round % 13;
    char *bytes = round % 3 ? malloc(size) : aligned_alloc(alignment, size);
    if (!bytes || (round % 3 == 0 && (uintptr_t)bytes % alignment)) abort();
    memset(bytes, 0x55, size);
    bytes = realloc(bytes, size / 2 + round % 2000 + 1);
    memset(bytes, 0x66, malloc_usable_size(bytes));
    free(__atomic_exchange_n(&shared[round % 64], (void *)bytes, __ATOMIC_ACQ_REL));
    char *cleared = calloc(1, size + 1);
    for (size_t at = 0; at <= size; at += 61)
      if (cleared[at]) abort();
    free(cleared);
  }
  return unused;
}

static void *work_with_nothing(void *unused) {
  enum { BLOCKS = 1000 };
  static void *_Atomic shared[BLOCKS];
  for (size_t round = 0; round < 100 * BLOCKS; round++) {
    void *nothing = round % 3 ? malloc(0) : aligned_alloc(64, 0);
    if (!nothing || (round % 3 == 0 && (uintptr_t)nothing % 64)) abort();
    if (malloc_usable_size(nothing)) abort();
    if (round % 7 == 0) nothing = realloc(nothing, 10);
    free(__atomic_exchange_n(&shared[round * 7919 % BLOCKS], nothing, __ATOMIC_ACQ_REL));
  }
  return unused;
}

int main(void) {
  threads_run(4, work);
  threads_run(4, work_with_nothing);
  return 0;
}
