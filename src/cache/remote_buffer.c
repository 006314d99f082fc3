#include "cache/remote_buffer.h"

#include "slab/pending.h"

#include "foreign/pointer.h"
#include "map/metadata.h"
#include "slab/batch_free.h"

static void send_home(struct remote_buffer_word *open, struct counters *counters) {
  if (open->bits) slab_free_remote(open->slab, open->word, open->bits, counters);
  show(open, bits, 0);
}

RESIDENT void remote_buffer_empty(struct remote_buffer *buffer, struct counters *counters) {
  if (!buffer->block_count) return;
  count(counters, COUNT_remote_buffer_flushes);
  count_add(counters, COUNT_remote_buffer_blocks, buffer->block_count);
  for (unsigned index = 0; index < REMOTE_BUFFER_WORDS; index++)
    send_home(&buffer->words[index], counters);
  buffer->block_count = 0;
  buffer->bytes = 0;
}

/* Remote frees that a thread passes on one by one before it gets a remote-free buffer: many threads never do more. */
enum { FIRST_ALONE = 16 };

static bool has_gone_home(struct remote_buffer_place place) {
  /* relaxed: if this thread set the bit, it sees it. */
  return load_relaxed(&place.slab->remote[place.word]) & place.bit;
}

bool remote_buffer_had(const struct remote_buffer *buffer, uintptr_t block) {
  struct slab *slab = slab_of_granule(granule_of(block));
  unsigned index;
  if (!slab_has_block(slab, block, &index)) return false;
  struct remote_buffer_place place = remote_buffer_place_at(slab, index);
  bool is_in_it = buffer->words &&
                  remote_buffer_word_has(remote_buffer_word_of(buffer, block, place.word), place);
  return is_in_it || has_gone_home(place);
}

bool remote_buffer_add(struct remote_buffer *buffer, uintptr_t block, struct counters *counters) {
  if (UNLIKELY(!buffer->words) &&
      load_relaxed(&counters->value[COUNT_remote_freed_blocks]) >= FIRST_ALONE)
    show(buffer, words, metadata_allocate(REMOTE_BUFFER_WORDS * sizeof *buffer->words));
  if (UNLIKELY(!buffer->words)) { /* straight home */
    batch_free(NULL, (void *[]){(void *)block}, 1, counters);
    return true;
  }
  struct slab *slab = slab_of_block(block);
  unsigned index = slab_index_of(slab, block, "free");
  if (UNLIKELY(index == NO_BLOCK)) return false;
  struct remote_buffer_place place = remote_buffer_place_at(slab, index);
  struct remote_buffer_word *open = remote_buffer_word_of(buffer, block, place.word);
  /* Before the buffer's first block the same block may have been freed, as the last one of the full buffer or alone. Other words are
   * checked when their bits go home: that finds bits that are set already. */
  if (UNLIKELY(remote_buffer_word_has(open, place) ||
               (!buffer->block_count && has_gone_home(place)))) {
    pointer_fail("free", block);
    return false;
  }
  if (!remote_buffer_word_takes(open, place)) {
    send_home(open, counters);
    show(open, slab, slab);
    open->word = place.word;
  }
  remote_buffer_put(buffer, open, place);
  return remote_buffer_is_full(buffer);
}

bool remote_buffer_is_valid(const struct remote_buffer *buffer) {
  unsigned block_count = 0;
  size_t bytes = 0;
  for (unsigned index = 0; buffer->words && index < REMOTE_BUFFER_WORDS; index++) {
    const struct remote_buffer_word *open = &buffer->words[index];
    if (!open->bits) continue;
    if (!open->slab) return false;
    block_count += count_bits(open->bits);
    bytes += count_bits(open->bits) * (size_t)open->slab->block_bytes;
  }
  return block_count <= buffer->block_count && bytes <= buffer->bytes;
}
