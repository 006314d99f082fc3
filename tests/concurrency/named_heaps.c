/* Threads share heaps that the program has made: each allocates in all of them, resizes, and frees
 * what others have allocated; and makes, empties and destroys heaps of its own meanwhile.  No block
 * is two things at once, and the figures come out even. */
#include "concurrency/heap_places.h"

enum { THREADS = 4, OWN_BLOCKS = 60 };

static size_t rounds;

static void *take(hak_heap *heap, size_t size, uint64_t *unused) {
  (void)unused;
  return hak_heap_malloc(heap, size);
}

static void use_an_own_heap(uint64_t *random) {
  hak_heap *heap = MUST(hak_heap_new("own"));
  char *blocks[OWN_BLOCKS];
  for (size_t i = 0; i < OWN_BLOCKS; i++) {
    size_t size = place_draw_size(random);
    blocks[i] = MUST(hak_heap_malloc(heap, size));
    stamp_write(blocks[i], size, i);
    if (i % 4 == 0) free(blocks[i]);
  }
  for (size_t i = 1; i < OWN_BLOCKS; i += 4) CHECK(stamp_holds(blocks[i], 1, i));
  if (random_below(random, 2)) CHECK(hak_heap_free_all(heap));
  CHECK(figures_of(heap).allocations == OWN_BLOCKS);
  CHECK(hak_heap_destroy(heap));
}

static void *live(void *number) {
  uint64_t random = random_seed((uint64_t)(size_t)number);
  for (size_t round = 0; round < rounds; round++) {
    place_visit(heaps[random_below(&random, HEAPS)], take, &random);
    if (round % 500 == 0) use_an_own_heap(&random);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  rounds = strtoul(argv[1], NULL, 10);
  places_set_up();
  threads_run(THREADS, live);
  places_check_figures();
  for (size_t i = 0; i < HEAPS; i++) {
    CHECK(hak_heap_free_all(heaps[i]));
    struct hak_figures figures = figures_of(heaps[i]);
    CHECK(figures.live_blocks == 0 && figures.live_bytes == 0);
    CHECK(hak_heap_destroy(heaps[i]));
  }
  return 0;
}
