#include "heap/outbox.h"

#include "guard/pointer.h"
#include "heap/batch.h"
#include "heap/reuse.h"
#include "map/metadata.h"

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

/* Blocks that a thread sends home one by one before it gets an outbox: many never free more of others'. */
enum { FIRST_ALONE = 16 };

static bool is_worth_an_outbox(const struct heap *heap) {
  return load_relaxed(&heap->owner.counters.value[COUNT_remote_freed_blocks]) >= FIRST_ALONE;
}

static bool has_gone_home(struct outbox_place place) {
  /* relaxed: if this thread set the bit, it sees it. */
  return load_relaxed(&place.slab->remote[place.word]) & place.bit;
}

bool outbox_had(const struct heap *heap, uintptr_t block) {
  struct slab *slab = slab_of_granule(granule_of(block));
  unsigned index;
  if (!slab_has_block(slab, block, &index)) return false;
  struct outbox_place place = outbox_place_at(slab, index);
  bool is_in_it = heap->outbox && outbox_word_has(outbox_word_of(heap, block, place.word), place);
  return is_in_it || has_gone_home(place);
}

bool outbox_add(struct heap *heap, uintptr_t block) {
  if (UNLIKELY(!heap->outbox) && is_worth_an_outbox(heap))
    heap->outbox = metadata_allocate(OUTBOX_WORDS * sizeof *heap->outbox);
  if (UNLIKELY(!heap->outbox)) { /* straight home */
    batch_free(NULL, (void *[]){(void *)block}, 1, &heap->owner.counters);
    return true;
  }
  struct slab *slab = slab_of_block(block);
  unsigned index = slab_index_of(slab, block, "free");
  if (UNLIKELY(index == NO_BLOCK)) return false;
  struct outbox_place place = outbox_place_at(slab, index);
  struct outbox_word *open = outbox_word_of(heap, block, place.word);
  /* The free before that of the first block may have been of the same, which was the last of the outbox before or
   * went home alone.  No other word is looked at before its bits go home: that finds those that are there. */
  if (UNLIKELY(outbox_word_has(open, place) || (!heap->outbox_count && has_gone_home(place)))) {
    pointer_fail("free", block);
    return false;
  }
  if (!outbox_word_takes(open, place)) {
    send_home(open, &heap->owner.counters);
    open->slab = slab;
    open->word = place.word;
  }
  outbox_put(heap, open, place);
  if (heap->outbox_count < OUTBOX_MAX_BLOCKS && heap->outbox_bytes < OUTBOX_MAX_BYTES) return false;
  reuse_note_full_outbox(heap);
  outbox_empty(heap);
  return true;
}
