#include "slab/record.h"

RESIDENT static void fill_local(struct slab *slab) {
  unsigned last = slab->word_count - 1u;
  for (unsigned word = 0; word < last; word++) slab->local[word] = ~UINT64_C(0);
  slab->local[last] = low_bits(slab->capacity - last * 64);
  slab_set_free(slab, slab->capacity);
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
  show(slab, class, (uint8_t) class); /* relaxed: `state` publishes it */
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
  ASSERT(slab_is_valid(slab) && slab->free_local == slab->capacity);
  /* release: the class and the rest before the state. */
  store_release(&slab->state, SLOT_ACTIVE);
  return slab;
}

/* Bits of a word of `local` that are blocks, from number `first` on. */
static uint64_t block_bits(const struct slab *slab, unsigned word, unsigned first) {
  unsigned begin = word * 64;
  unsigned below = first < begin ? 0 : first - begin < 64 ? first - begin : 64;
  return slab_word_bits(slab, word) & ~low_bits(below);
}

bool slab_is_valid(const struct slab *slab) {
  const struct slab_shape *shape = &slab_shapes[slab->class];
  if (slab->capacity != shape->capacity || slab->block_bytes != shape->block_bytes) return false;
  unsigned free_blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++) {
    uint64_t local = slab->local[word];
    if (local & ~slab_word_bits(slab, word)) return false;
    if (~local & block_bits(slab, word, slab->handed_out)) return false;
    if (local && word < slab->first_word) return false;
    free_blocks += count_bits(local);
  }
  uint64_t pages = slab->waiting_pages | slab->given_pages;
  return free_blocks == slab->free_local && !(slab->waiting_pages & slab->given_pages) &&
         slab->has_free_pages == (pages != 0);
}

void release_slab(struct slab *slab, uint32_t age_ms, struct counters *counters) {
  ASSERT(load_relaxed(&slab->owner) == NULL && !slab->is_listed);
  ASSERT(slab_is_valid(slab) && slab->free_local == slab->capacity);
  slab->first_word = 0;
  store_relaxed(&slab->state, SLOT_EMPTY); /* ordered by the pool's next operations */
  size_t granule = granule_of(slab->base);
  struct slot_run run = {superslab_of_granule(granule), granule % GRANULES_PER_CHUNK, true};
  release_slots(run, slab->class, age_ms, counters);
}
