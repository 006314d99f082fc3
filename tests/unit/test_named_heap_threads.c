/* src/named: a heap that threads share, for the thread sanitizer, too. */
#include "heaps.h"
#include "named/named_heap.h"

enum { THREADS = 4, HELD = 50, ROUNDS = 5000 };

static struct hak_heap *shared;
static ATOMIC(void *) passed[HELD]; /* from thread to thread */

/* acq_rel, by the exchange: what was written to the block. */
static void *pass_on(void *seed) {
  uint64_t random = (uintptr_t)seed;
  for (unsigned round = 0; round < ROUNDS; round++) {
    size_t at = random_below(&random, HELD);
    uint64_t *block = hak_heap_malloc(shared, 16 + random_below(&random, at ? 300 : 200000));
    REQUIRE(block);
    *block = (uintptr_t)seed * ROUNDS + round;
    uint64_t *before = atomic_exchange(&passed[at], (void *)block);
    if (before) hak_free(before);
  }
  return NULL;
}

TEST(share) {
  pthread_t threads[THREADS];
  struct hak_figures figures;
  start_library();
  shared = hak_heap_new("shared");
  REQUIRE(shared);
  for (uintptr_t index = 0; index < THREADS; index++)
    REQUIRE(!pthread_create(&threads[index], NULL, pass_on, (void *)(index + 1)));
  for (unsigned round = 0; round < 100; round++) {
    hak_heap_figures(shared, &figures, sizeof figures);
    REQUIRE(figures.live_blocks <= HELD + 2 * THREADS);
    hak_purge(round % 2);
  }
  for (unsigned index = 0; index < THREADS; index++) REQUIRE(!pthread_join(threads[index], NULL));
  unsigned held = 0;
  for (unsigned at = 0; at < HELD; at++) held += passed[at] != NULL;
  hak_heap_figures(shared, &figures, sizeof figures);
  REQUIRE(figures.live_blocks == held && figures.allocations == THREADS * ROUNDS);
  REQUIRE(hak_heap_free_all(shared) && named_live_bytes(shared) == 0);
  for (unsigned at = 0; at < HELD; at++) passed[at] = NULL;
}

/* What a thread does with a heap of its own, beside what others do with theirs and with the shared
 * one. */
static void *make_and_destroy(void *seed) {
  enum { BLOCKS = 60, HEAPS = 60 };
  uint64_t random = (uintptr_t)seed;
  void *blocks[BLOCKS];
  for (unsigned made = 0; made < HEAPS; made++) {
    struct hak_heap *heap = hak_heap_new(NULL);
    for (unsigned index = 0; index < BLOCKS; index++) {
      size_t size = 1 + random_below(&random, index % 8 ? 3000 : 400000);
      REQUIRE((blocks[index] = hak_heap_malloc(heap, size)));
      memset(blocks[index], 1, size);
    }
    for (unsigned index = 0; index < BLOCKS; index++) {
      size_t size = 1 + random_below(&random, index % 8 ? 3000 : 400000);
      struct hak_heap *other = index % 3 ? heap : shared;
      REQUIRE((blocks[index] = hak_heap_realloc(other, blocks[index], size)));
      void *before = atomic_exchange(&passed[index % HELD], index % 3 ? NULL : blocks[index]);
      if (before) hak_free(before);
      if (index % 3 == 1) hak_free(blocks[index]);
    }
    REQUIRE(made % 2 ? hak_heap_destroy(heap) : hak_heap_free_all(heap) && hak_heap_destroy(heap));
  }
  return NULL;
}

/* Rounds visit heaps that are made and destroyed, and their figures are read. */
TEST(make_beside_rounds) {
  pthread_t threads[THREADS];
  start_library();
  shared = hak_heap_new("shared");
  for (uintptr_t index = 0; index < THREADS; index++)
    REQUIRE(!pthread_create(&threads[index], NULL, make_and_destroy, (void *)(index + 1)));
  for (unsigned round = 0; round < 100; round++) {
    hak_purge(round % 2);
    look();
  }
  for (unsigned index = 0; index < THREADS; index++) REQUIRE(!pthread_join(threads[index], NULL));
  for (unsigned at = 0; at < HELD; at++) hak_free(atomic_exchange(&passed[at], NULL));
  struct hak_figures figures;
  hak_heap_figures(shared, &figures, sizeof figures);
  REQUIRE(figures.live_blocks == 0 && figures.live_bytes == 0 && hak_heap_destroy(shared));
}
