/* Nothing wrong with malloc(0): an address of its own, without a byte; resized, aligned, of several threads. */
#include "concurrency/threads.h"

static void *work(void *unused) {
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
  return 0;
}
