#include "slab/record.h"

/* ---- acquire ----------------------------------------------------------------------------------------- */

RESIDENT static void fill_local(struct slab *slab) {
  unsigned last = slab->word_count - 1u;
  for (unsigned word = 0; word < last; word++) slab->local[word] = ~UINT64_C(0);
  slab->local[last] = low_bits(slab->capacity - last * 64);
  slab->free_local = slab->capacity;
  slab->first_word = 0;
  slab->handed_out = 0;
  ASSERT(!slab->has_free_pages && !slab->waiting_pages && !slab->given_pages);
}

/* Makes slots a slab of the class. */
RESIDENT static void make_slab(struct slab *slab, struct slot_run run, unsigned class) {
  const struct slab_shape *shape = &slab_shapes[class];
  struct slab_chunk *chunk = (struct slab_chunk *)(void *)run.superslab;
  slab->base = chunk_address(run.superslab->chunk) + (size_t)run.first * GRANULE_BYTES;
  slab->block_bytes = shape->block_bytes;
  slab->capacity = shape->capacity;
  slab->word_count = shape->word_count;
  slab->slot_count = shape->slot_count;
  slab->class = (uint8_t) class;
  slab->local = slab_local_bits(chunk, run.first, shape);
  slab->remote = slab_remote_bits(chunk, run.first, shape);
  for (unsigned later = 1; later < shape->slot_count; later++) slab[later].base = slab->base;
  fill_local(slab);
}

RESIDENT struct slab *acquire_slab(unsigned class, enum pool_reach reach,
                                   struct counters *counters) {
  struct slot_run run = acquire_slots(class, reach, counters);
  if (!run.superslab) return NULL;
  struct slab *slab = &((struct slab_chunk *)(void *)run.superslab)->slabs[run.first];
  ASSERT(!run.is_empty || (load_relaxed(&slab->state) == SLOT_EMPTY && slab->class == class));
  if (!run.is_empty) make_slab(slab, run, class);
  /* release: the class and the rest before the state (P3). */
  store_release(&slab->state, SLOT_ACTIVE);
  return slab;
}

/* ---- release ------------------------------------------------------------------------------------------- */

static void check_all_free(const struct slab *slab) {
#if HAK_DEBUG
  unsigned free_blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++) {
    free_blocks += count_bits(slab->local[word]);
    ASSERT(load_relaxed(&slab->remote[word]) == 0);
  }
  ASSERT(free_blocks == slab->capacity && slab->free_local == slab->capacity);
#endif
  (void)slab;
}

RESIDENT void release_slab(struct slab *slab, uint32_t age_ms, struct counters *counters) {
  ASSERT(load_relaxed(&slab->owner) == NULL && !slab->is_listed);
  check_all_free(slab);
  slab->first_word = 0;
  store_relaxed(&slab->state, SLOT_EMPTY); /* ordered by what the pool does then */
  size_t granule = granule_of(slab->base);
  struct slot_run run = {superslab_of_granule(granule), granule % GRANULES_PER_CHUNK, true};
  release_slots(run, slab->class, age_ms, counters);
}
