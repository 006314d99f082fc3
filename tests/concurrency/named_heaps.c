/* Threads share heaps that the program has made: each allocates in all of them, resizes, and frees what others have allocated; and
 * makes, empties and destroys heaps of its own meanwhile.  No block is two things at once, and the figures come out even. */
#include "concurrency/heap_places.h"

enum { THREADS = 4, HEAPS = 3, PLACES = 256, OWN_BLOCKS = 60 };

static struct place places[PLACES];
static hak_heap *heaps[HEAPS];
static size_t rounds;

static void visit(struct place *place, uint64_t *random) {
  CHECK(pthread_mutex_lock(&place->mutex) == 0);
  if (!place->block) {
    place->heap = heaps[random_below(random, HEAPS)];
    place->size = place_draw_size(random);
    place->seed = random_next(random);
    place->block = MUST(hak_heap_malloc(place->heap, place->size));
    stamp_write(place->block, place->size, place->seed);
  } else if (random_below(random, 4) == 0) {
    place_check(place);
    place_resize(place, place_draw_size(random));
  } else {
    place_check(place);
    free(place->block);
    place->block = NULL;
  }
  CHECK(pthread_mutex_unlock(&place->mutex) == 0);
}

static void use_an_own_heap(uint64_t *random) {
  hak_heap *heap = hak_heap_new("own");
  struct hak_figures figures;
  char *blocks[OWN_BLOCKS];
  CHECK(heap != NULL);
  for (size_t i = 0; i < OWN_BLOCKS; i++) {
    size_t size = place_draw_size(random);
    blocks[i] = MUST(hak_heap_malloc(heap, size));
    stamp_write(blocks[i], size, i);
    if (i % 4 == 0) free(blocks[i]);
  }
  for (size_t i = 1; i < OWN_BLOCKS; i += 4) CHECK(stamp_holds(blocks[i], 1, i));
  if (random_below(random, 2)) CHECK(hak_heap_free_all(heap));
  hak_heap_figures(heap, &figures, sizeof figures);
  CHECK(figures.allocations == OWN_BLOCKS);
  CHECK(hak_heap_destroy(heap));
}

static void *live(void *number) {
  uint64_t random = random_seed((uint64_t)(size_t)number);
  for (size_t round = 0; round < rounds; round++) {
    visit(&places[random_below(&random, PLACES)], &random);
    if (round % 500 == 0) use_an_own_heap(&random);
  }
  return NULL;
}

static void check_figures(void) {
  uint64_t live[HEAPS] = {0}, least[HEAPS] = {0};
  for (size_t i = 0; i < PLACES; i++) {
    if (!places[i].block) continue;
    place_check(&places[i]);
    for (size_t heap = 0; heap < HEAPS; heap++)
      if (places[i].heap == heaps[heap]) {
        live[heap]++;
        least[heap] += places[i].size;
      }
  }
  for (size_t heap = 0; heap < HEAPS; heap++) {
    struct hak_figures figures;
    hak_heap_figures(heaps[heap], &figures, sizeof figures);
    CHECK_MSG(figures.live_blocks == live[heap], "%zu blocks, not %zu", (size_t)figures.live_blocks,
              (size_t)live[heap]);
    CHECK(figures.live_bytes >= least[heap]);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  pthread_t threads[THREADS];
  rounds = strtoul(argv[1], NULL, 10);
  for (size_t i = 0; i < HEAPS; i++) CHECK((heaps[i] = hak_heap_new("shared")) != NULL);
  for (size_t i = 0; i < PLACES; i++) CHECK(pthread_mutex_init(&places[i].mutex, NULL) == 0);
  for (size_t i = 0; i < THREADS; i++) threads[i] = thread_start(live, (void *)i);
  for (size_t i = 0; i < THREADS; i++) thread_join(threads[i]);
  check_figures();
  for (size_t i = 0; i < HEAPS; i++) {
    struct hak_figures figures;
    CHECK(hak_heap_free_all(heaps[i]));
    hak_heap_figures(heaps[i], &figures, sizeof figures);
    CHECK(figures.live_blocks == 0 && figures.live_bytes == 0);
    CHECK(hak_heap_destroy(heaps[i]));
  }
  return 0;
}
