#include "heap/remote_buffer.h"

#include "guard/pointer.h"
#include "heap/batch.h"
#include "heap/reuse.h"
#include "map/metadata.h"

static void send_home(struct remote_buffer_word *open, struct counters *counters) {
  if (open->bits) slab_free_remote(open->slab, open->word, open->bits, counters);
  open->bits = 0;
}

void remote_buffer_empty(struct heap *heap) {
  if (!heap->remote_buffer_count) return;
  struct counters *counters = &heap->owner.counters;
  count(counters, COUNT_remote_buffer_flushes);
  count_add(counters, COUNT_remote_buffer_blocks, heap->remote_buffer_count);
  for (unsigned index = 0; index < REMOTE_BUFFER_WORDS; index++)
    send_home(&heap->remote_buffer[index], counters);
  heap->remote_buffer_count = 0;
  heap->remote_buffer_bytes = 0;
}

/* Blocks that a thread sends home one by one before it gets a remote-free buffer: many never free more of others'. */
enum { FIRST_ALONE = 16 };

static bool is_worth_an_remote_buffer(const struct heap *heap) {
  return load_relaxed(&heap->owner.counters.value[COUNT_remote_freed_blocks]) >= FIRST_ALONE;
}

static bool has_gone_home(struct remote_buffer_place place) {
  /* relaxed: if this thread set the bit, it sees it. */
  return load_relaxed(&place.slab->remote[place.word]) & place.bit;
}

bool remote_buffer_had(const struct heap *heap, uintptr_t block) {
  struct slab *slab = slab_of_granule(granule_of(block));
  unsigned index;
  if (!slab_has_block(slab, block, &index)) return false;
  struct remote_buffer_place place = remote_buffer_place_at(slab, index);
  bool is_in_it = heap->remote_buffer &&
                  remote_buffer_word_has(remote_buffer_word_of(heap, block, place.word), place);
  return is_in_it || has_gone_home(place);
}

bool remote_buffer_add(struct heap *heap, uintptr_t block) {
  if (UNLIKELY(!heap->remote_buffer) && is_worth_an_remote_buffer(heap))
    heap->remote_buffer = metadata_allocate(REMOTE_BUFFER_WORDS * sizeof *heap->remote_buffer);
  if (UNLIKELY(!heap->remote_buffer)) { /* straight home */
    batch_free(NULL, (void *[]){(void *)block}, 1, &heap->owner.counters);
    return true;
  }
  struct slab *slab = slab_of_block(block);
  unsigned index = slab_index_of(slab, block, "free");
  if (UNLIKELY(index == NO_BLOCK)) return false;
  struct remote_buffer_place place = remote_buffer_place_at(slab, index);
  struct remote_buffer_word *open = remote_buffer_word_of(heap, block, place.word);
  /* The free before that of the first block may have been of the same, which was the last of the remote-free buffer before or
   * went home alone.  No other word is looked at before its bits go home: that finds those that are there. */
  if (UNLIKELY(remote_buffer_word_has(open, place) ||
               (!heap->remote_buffer_count && has_gone_home(place)))) {
    pointer_fail("free", block);
    return false;
  }
  if (!remote_buffer_word_takes(open, place)) {
    send_home(open, &heap->owner.counters);
    open->slab = slab;
    open->word = place.word;
  }
  remote_buffer_put(heap, open, place);
  if (heap->remote_buffer_count < REMOTE_BUFFER_MAX_BLOCKS &&
      heap->remote_buffer_bytes < REMOTE_BUFFER_MAX_BYTES)
    return false;
  reuse_note_full_remote_buffer(heap);
  remote_buffer_empty(heap);
  return true;
}
