#include "heap/outbox.h"

#include "heap/batch.h"
#include "map/metadata.h"
#include "slab/slab.h"

/* Words that are open at a time; a block of a further word that maps to the same place sends the
 * older one home.  No sorting: frees mostly come in the order of allocation. */
enum { OPEN_WORDS = 64 };

struct open_word {
  struct slab *slab;
  unsigned word;
  uint64_t bits;
};

static void send_home(struct open_word *open, struct counters *counters) {
  if (open->bits) slab_free_remote(open->slab, open->word, open->bits, counters);
  open->bits = 0;
}

static struct open_word *place_of(struct open_word *open_words, const struct slab *slab,
                                  unsigned word) {
  return &open_words[mix_bits((uintptr_t)slab + word) % OPEN_WORDS];
}

static void add(struct open_word *open_words, void *block, struct counters *counters) {
  struct slab *slab = slab_of_block((uintptr_t)block);
  unsigned index = slab_index_of(slab, (uintptr_t)block, "free");
  struct open_word *open = place_of(open_words, slab, index / 64);
  uint64_t bit = UINT64_C(1) << index % 64;
  /* A bit that is open already is a double free: sending it home twice reports it. */
  if (open->slab != slab || open->word != index / 64 || open->bits & bit) {
    send_home(open, counters);
    open->slab = slab;
    open->word = index / 64;
  }
  open->bits |= bit;
}

void outbox_empty(struct heap *heap) {
  if (!heap->outbox_count) return;
  struct counters *counters = &heap->owner.counters;
  struct open_word open_words[OPEN_WORDS] = {0};
  count(counters, COUNT_outbox_flushes);
  count_add(counters, COUNT_outbox_blocks, heap->outbox_count);
  for (unsigned index = 0; index < heap->outbox_count; index++)
    add(open_words, heap->outbox[index], counters);
  for (unsigned place = 0; place < OPEN_WORDS; place++) send_home(&open_words[place], counters);
  heap->outbox_count = 0;
  heap->outbox_bytes = 0;
}

bool outbox_add(struct heap *heap, void *block, size_t block_bytes) {
  if (UNLIKELY(!heap->outbox))
    heap->outbox = metadata_allocate(OUTBOX_SLOTS * sizeof *heap->outbox);
  if (UNLIKELY(!heap->outbox)) { /* straight home */
    batch_free(NULL, &block, 1, &heap->owner.counters);
    return true;
  }
  heap->outbox[heap->outbox_count++] = block;
  heap->outbox_bytes += block_bytes;
  if (heap->outbox_count < OUTBOX_SLOTS && heap->outbox_bytes < OUTBOX_MAX_BYTES) return false;
  outbox_empty(heap);
  return true;
}
