#include "heap/outbox.h"

#include "heap/batch.h"
#include "map/metadata.h"
#include "slab/slab.h"

/* The word of the bitmaps that has a block's bit, and the bit. */
struct place {
  struct slab *slab;
  unsigned word;
  uint64_t bit;
};

static struct place place_at(struct slab *slab, unsigned index) {
  return (struct place){.slab = slab, .word = index / 64, .bit = UINT64_C(1) << index % 64};
}

/* Where in the outbox: neighbouring slabs, and words of one slab, do not meet. */
static struct outbox_word *open_word_of(struct heap *heap, struct place place) {
  enum { SLAB_STRIDE = 5 };
  return &heap->outbox[(granule_of(place.slab->base) * SLAB_STRIDE + place.word) % OUTBOX_WORDS];
}

/* A bit that is open already is a double free. */
static bool has_room_for(const struct outbox_word *open, struct place place) {
  return open->slab == place.slab && open->word == place.word && !(open->bits & place.bit);
}

/* The bit comes last: a forked child may find a thread cut off in between. */
static void put(struct heap *heap, struct outbox_word *open, struct place place) {
  heap->outbox_count++;
  heap->outbox_bytes += place.slab->block_bytes;
  keep_store_order();
  open->bits |= place.bit;
}

static void send_home(struct outbox_word *open, struct counters *counters) {
  if (open->bits) slab_free_remote(open->slab, open->word, open->bits, counters);
  open->bits = 0;
}

void outbox_empty(struct heap *heap) {
  if (!heap->outbox_count) return;
  struct counters *counters = &heap->owner.counters;
  count(counters, COUNT_outbox_flushes);
  count_add(counters, COUNT_outbox_blocks, heap->outbox_count);
  for (unsigned index = 0; index < OUTBOX_WORDS; index++) send_home(&heap->outbox[index], counters);
  heap->outbox_count = 0;
  heap->outbox_bytes = 0;
}

/* Leaves the last block, and a word that is full of bytes, to outbox_add. */
static bool is_nearly_full(const struct heap *heap) {
  return heap->outbox_count >= OUTBOX_MAX_BLOCKS - 1 ||
         heap->outbox_bytes >= OUTBOX_MAX_BYTES - TINY_MAX_BYTES;
}

bool outbox_try_add(struct heap *heap, void *block) {
  if (UNLIKELY(!heap->outbox)) return false; /* the constant heaps never have one */
  struct slab *slab = slab_of_block((uintptr_t)block);
  unsigned index;
  if (UNLIKELY(!slab_has_block(slab, (uintptr_t)block, &index))) return false;
  struct place place = place_at(slab, index);
  struct outbox_word *open = open_word_of(heap, place);
  if (!has_room_for(open, place) || is_nearly_full(heap)) return false;
  put(heap, open, place);
  return true;
}

bool outbox_add(struct heap *heap, void *block) {
  if (UNLIKELY(!heap->outbox))
    heap->outbox = metadata_allocate(OUTBOX_WORDS * sizeof *heap->outbox);
  if (UNLIKELY(!heap->outbox)) { /* straight home */
    batch_free(NULL, &block, 1, &heap->owner.counters);
    return true;
  }
  struct slab *slab = slab_of_block((uintptr_t)block);
  struct place place = place_at(slab, slab_index_of(slab, (uintptr_t)block, "free"));
  struct outbox_word *open = open_word_of(heap, place);
  /* Bits that were freed twice go home twice, which reports them. */
  if (!has_room_for(open, place)) {
    send_home(open, &heap->owner.counters);
    open->slab = slab;
    open->word = place.word;
  }
  put(heap, open, place);
  if (heap->outbox_count < OUTBOX_MAX_BLOCKS && heap->outbox_bytes < OUTBOX_MAX_BYTES) return false;
  outbox_empty(heap);
  return true;
}
