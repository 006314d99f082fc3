/* heap_places.h: heaps that threads share, and places where they put blocks of them for each other,
 * each with what it must hold. */
#ifndef TESTS_CONCURRENCY_HEAP_PLACES_H
#define TESTS_CONCURRENCY_HEAP_PLACES_H

#include "api/figures.h"
#include "api/random.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

enum { HEAPS = 3, PLACES = 256 };

struct place {
  pthread_mutex_t mutex;
  char *block;
  size_t size;
  uint64_t seed;
  hak_heap *heap; /* NULL: a thread's */
};

static struct place places[PLACES];
static hak_heap *heaps[HEAPS];

static inline void places_set_up(void) {
  for (size_t i = 0; i < HEAPS; i++) heaps[i] = MUST(hak_heap_new("shared"));
  for (size_t i = 0; i < PLACES; i++) CHECK(pthread_mutex_init(&places[i].mutex, NULL) == 0);
}

static inline size_t place_draw_size(uint64_t *random) {
  static const size_t most[] = {64, 64, 1024, 1024, 1024, 5000, 40000, 300000};
  return 1 + random_below(random, most[random_below(random, COUNT_OF(most))]);
}

static inline void place_check(const struct place *place) {
  CHECK_MSG(stamp_holds(place->block, place->size, place->seed), "a block of %zu bytes",
            place->size);
  CHECK(hak_heap_of(place->block) == place->heap);
}

static inline void place_resize(struct place *place, size_t size) {
  size_t kept = size < place->size ? size : place->size;
  place->block = realloc(place->block, size);
  CHECK(place->block != NULL && stamp_holds(place->block, kept, place->seed));
  place->size = size;
  stamp_write(place->block, size, place->seed);
}

/* A block of the heap, of this size. */
typedef void *place_take(hak_heap *heap, size_t size, uint64_t *random);

/* An empty place gets a block; what is in one is resized, or goes. */
static inline void place_visit(hak_heap *heap, place_take *take, uint64_t *random) {
  struct place *place = &places[random_below(random, PLACES)];
  CHECK(pthread_mutex_lock(&place->mutex) == 0);
  if (!place->block) {
    place->heap = heap;
    place->size = place_draw_size(random);
    place->seed = random_next(random);
    place->block = MUST(take(heap, place->size, random));
    stamp_write(place->block, place->size, place->seed);
  } else if (random_below(random, 3) == 0) {
    place_check(place);
    place_resize(place, place_draw_size(random));
    place_check(place);
  } else {
    place_check(place);
    free(place->block);
    place->block = NULL;
  }
  CHECK(pthread_mutex_unlock(&place->mutex) == 0);
}

/* When no thread is left: the figures come out even. */
static inline void places_check_figures(void) {
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
    struct hak_figures figures = figures_of(heaps[heap]);
    CHECK_MSG(figures.live_blocks == live[heap], "%zu blocks, not %zu", (size_t)figures.live_blocks,
              (size_t)live[heap]);
    CHECK(figures.live_bytes >= least[heap]);
  }
}

#endif
