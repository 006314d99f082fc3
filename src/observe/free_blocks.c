#include "observe/free_blocks.h"

#include "base/peek.h"
#include "cache/quarantine.h"
#include "large/range_magazine.h"

/* ---- caches ---------------------------------------------------------------------------------------------- */

static void add_magazines(struct free_blocks *found, const struct heap *heap) {
  struct magazine magazines[SLAB_CLASS_COUNT];
  peek(magazines, heap->magazines, sizeof magazines);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    const struct magazine *magazine = &magazines[class];
    /* Copied while it grew it may be no magazine. */
    if (magazine->base <= magazine->top && magazine->top <= magazine->end)
      found->in_caches[class] += magazine_count(magazine);
  }
}

static void add_range_magazines(struct free_blocks *found, const struct heap *heap) {
  struct range_magazines *magazines;
  peek(&magazines, &heap->ranges, sizeof magazines);
  if (!magazines) return;
  for (unsigned row = 0; row < LARGE_CLASS_COUNT; row++) {
    uint32_t slots[RANGE_MAGAZINE_SLOTS];
    peek(slots, magazines->slots[row], sizeof slots);
    for (unsigned slot = 0; slot < RANGE_MAGAZINE_SLOTS; slot++)
      found->in_caches[SLAB_CLASS_COUNT + row] += slots[slot] != 0;
  }
}

static void add_remote_buffer(struct free_blocks *found, const struct heap *heap) {
  struct remote_buffer_word words[REMOTE_BUFFER_WORDS], *remote_buffer;
  struct slab slab;
  peek(&remote_buffer, &heap->remote_buffer, sizeof remote_buffer);
  if (!remote_buffer) return;
  peek(words, remote_buffer, sizeof words);
  for (unsigned index = 0; index < REMOTE_BUFFER_WORDS; index++) {
    if (!words[index].bits || !words[index].slab) continue;
    peek(&slab, words[index].slab, sizeof slab);
    if (slab.class < SLAB_CLASS_COUNT)
      found->in_caches[slab.class] += count_bits(words[index].bits);
  }
}

static void add_quarantine(struct free_blocks *found, const struct heap *heap) {
  struct quarantine *quarantine;
  peek(&quarantine, &heap->quarantine, sizeof quarantine);
  if (!quarantine) return;
  for (unsigned index = 0; index < QUARANTINE_PLACES; index++) {
    uintptr_t block = load_relaxed(&quarantine->blocks[index]);
    uint32_t entry = block ? owner_map_entry(block) : MAP_CLASS_MASK;
    if ((entry & MAP_CLASS_MASK) < SLAB_CLASS_COUNT) found->in_caches[entry & MAP_CLASS_MASK]++;
  }
}

/* ---- slabs ----------------------------------------------------------------------------------------------- */

static unsigned remote_blocks(const struct slab *slab) {
  unsigned blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++)
    blocks += count_bits(load_relaxed(&slab->remote[word]));
  return blocks;
}

/* A copy made while the slab changed hands may be no slab: nothing that is read of it may lead astray. */
static bool is_plausible(const struct slab *copy, const struct slab *slab) {
  bool is_inline = copy->remote == slab->inline_remote;
  return copy->class < SLAB_CLASS_COUNT && copy->slot_count && copy->remote &&
         copy->word_count <= (is_inline ? (int)INLINE_WORDS : (int)WIDE_WORDS);
}

/* The slot after the slab that begins at this one, if one does. */
static unsigned add_slab(struct free_blocks *found, const struct slab_chunk *chunk, unsigned slot) {
  struct slab slab;
  if (load_relaxed(&chunk->slabs[slot].state) != SLOT_ACTIVE) return slot + 1;
  peek(&slab, &chunk->slabs[slot], sizeof slab);
  if (!is_plausible(&slab, &chunk->slabs[slot])) return slot + 1;
  unsigned blocks = slab.free_local + remote_blocks(&slab);
  found->in_slabs[slab.class] += blocks;
  if (blocks < slab.capacity)
    found->slab_bytes_out += (uint64_t)(slab.capacity - blocks) * slab.block_bytes;
  return slot + slab.slot_count;
}

static void add_superslab(struct free_blocks *found, const struct slab_chunk *chunk) {
  for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB;) slot = add_slab(found, chunk, slot);
}

void free_blocks_count(struct free_blocks *found) {
  *found = (struct free_blocks){0};
  size_t end = load_relaxed(&window.granule_count) / GRANULES_PER_CHUNK;
  for (size_t chunk = 0; chunk < end; chunk++) {
    uintptr_t record = (uintptr_t)chunk_metadata(chunk);
    if (record && !(record & CHUNK_IS_RANGES))
      add_superslab(found, slab_chunk_of(chunk * GRANULES_PER_CHUNK));
  }
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    const struct heap *heap = heap_of_owner(owner);
    add_magazines(found, heap);
    add_range_magazines(found, heap);
    add_remote_buffer(found, heap);
    add_quarantine(found, heap);
  }
}
