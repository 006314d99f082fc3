/* heap_places.h: places where threads put blocks of heaps for each other, each with what it must hold. */
#ifndef TESTS_CONCURRENCY_HEAP_PLACES_H
#define TESTS_CONCURRENCY_HEAP_PLACES_H

#include "api/random.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"

struct place {
  pthread_mutex_t mutex;
  char *block;
  size_t size;
  uint64_t seed;
  hak_heap *heap; /* NULL: a thread's */
};

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

#endif
