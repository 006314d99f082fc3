#include "observe/survey.h"

#include "base/peek.h"
#include "cache/quarantine.h"

/* ---- heaps ---------------------------------------------------------------------------------------------- */

static void add_magazines(struct survey *survey, const struct heap *heap) {
  struct magazine magazines[SLAB_CLASS_COUNT];
  peek(magazines, heap->magazines, sizeof magazines);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    const struct magazine *magazine = &magazines[class];
    /* Seen while it grew it may be no magazine. */
    if (magazine->base <= magazine->top && magazine->top <= magazine->end)
      survey->classes[class].cached_blocks += magazine_count(magazine);
  }
}

static void add_remote_buffer(struct survey *survey, const struct heap *heap) {
  struct remote_buffer_word words[REMOTE_BUFFER_WORDS], *remote_buffer;
  struct slab slab;
  peek(&remote_buffer, &heap->remote_buffer.words, sizeof remote_buffer);
  if (!remote_buffer) return;
  peek(words, remote_buffer, sizeof words);
  for (unsigned index = 0; index < REMOTE_BUFFER_WORDS; index++) {
    if (!words[index].bits || !words[index].slab) continue;
    peek(&slab, words[index].slab, sizeof slab);
    if (slab.class < SLAB_CLASS_COUNT)
      survey->classes[slab.class].cached_blocks += count_bits(words[index].bits);
  }
}

static void add_quarantine(struct survey *survey, const struct heap *heap) {
  struct quarantine *quarantine;
  peek(&quarantine, &heap->quarantine, sizeof quarantine);
  if (!quarantine) return;
  for (unsigned index = 0; index < QUARANTINE_PLACES; index++) {
    uintptr_t block = load_relaxed(&quarantine->blocks[index]);
    uint32_t entry = block ? owner_map_entry(block) : MAP_CLASS_MASK;
    if ((entry & MAP_CLASS_MASK) < SLAB_CLASS_COUNT)
      survey->classes[entry & MAP_CLASS_MASK].cached_blocks++;
  }
}

static void add_counted(struct survey *survey, const struct heap *heap) {
  /* acquire: zeroed before; pairs with class_figures_make. */
  struct class_counters *counters = load_acquire(&heap->class_counters);
  if (!counters) return;
  for (unsigned class = 0; class < CLASS_COUNT; class ++) {
    uint64_t *counted = survey->classes[class].counted;
#define CLASS_COUNTER(name, unit, meaning) *counted++ += load_relaxed(&counters[class].name);
#include "base/counters.def"
  }
}

static void add_heaps(struct survey *survey) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    const struct heap *heap = heap_of_owner(owner);
    bool is_parked = load_relaxed(&owner->state) == OWNER_PARKED;
    *(is_parked ? &survey->heaps_parked : &survey->heaps_in_use) += 1;
    add_magazines(survey, heap);
    add_remote_buffer(survey, heap);
    add_quarantine(survey, heap);
    add_counted(survey, heap);
  }
}

/* ---- slabs and Large blocks ---------------------------------------------------------------------------------------------- */

static unsigned remote_blocks(const struct slab *slab) {
  unsigned blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++)
    blocks += count_bits(load_relaxed(&slab->remote[word]));
  return blocks;
}

/* A copy made while the slab changed hands may be no slab: of what follows nothing may lead astray. */
static bool is_plausible(const struct slab *copy, const struct slab *slab) {
  bool is_inline = copy->remote == slab->inline_remote;
  return copy->class < SLAB_CLASS_COUNT && copy->slot_count && copy->remote &&
         copy->word_count <= (is_inline ? (int)INLINE_WORDS : (int)WIDE_WORDS);
}

/* The slot behind the slab that begins at this one, if one does. */
static unsigned add_slab(struct survey *survey, const struct superslab *superslab, unsigned slot) {
  struct slab slab;
  if (load_relaxed(&superslab->slabs[slot].state) != SLOT_ACTIVE) return slot + 1;
  peek(&slab, &superslab->slabs[slot], sizeof slab);
  if (!is_plausible(&slab, &superslab->slabs[slot])) return slot + 1;
  struct class_survey *class = &survey->classes[slab.class];
  class->slabs++;
  class->capacity_blocks += slab.capacity;
  class->free_blocks += slab.free_local + remote_blocks(&slab);
  return slot + slab.slot_count;
}

static void add_superslab(struct survey *survey, const struct superslab *superslab) {
  for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB;) slot = add_slab(survey, superslab, slot);
}

/* Large blocks are ranges of their own, known by the owner map. */
static void add_large(struct survey *survey, size_t chunk) {
  size_t granule = chunk * GRANULES_PER_CHUNK;
  for (size_t end = granule + GRANULES_PER_CHUNK; granule < end; granule++) {
    uint32_t entry = load_relaxed(&window.owner_map[granule]);
    unsigned class = entry & MAP_CLASS_MASK;
    if (map_entry_is_live(entry) && class < CLASS_COUNT) survey->classes[class].capacity_blocks++;
  }
}

static void add_chunks(struct survey *survey) {
  size_t end = load_relaxed(&window.granule_count) / GRANULES_PER_CHUNK;
  for (size_t chunk = 0; chunk < end; chunk++) {
    uintptr_t record = (uintptr_t)chunk_metadata(chunk);
    if (!record) continue;
    if (record & CHUNK_IS_RANGES)
      add_large(survey, chunk);
    else
      add_superslab(survey, superslab_of_chunk(chunk));
  }
}

void survey_take(struct survey *survey) {
  *survey = (struct survey){0};
  add_chunks(survey);
  add_heaps(survey);
  for (unsigned number = 0; number < CLASS_COUNT; number++) {
    struct class_survey *class = &survey->classes[number];
    uint64_t elsewhere = class->free_blocks + class->cached_blocks;
    class->live_blocks =
        class->capacity_blocks > elsewhere ? class->capacity_blocks - elsewhere : 0;
  }
}
