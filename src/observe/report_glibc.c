#include "observe/report_glibc.h"

#include "base/bits.h"
#include "cache/heap.h"
#include "cache/quarantine.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "ranges/range.h"
#include "ranges/range_magazine.h"
#include "slab/slab.h"

/* ---- blocks of slabs ------------------------------------------------------------------------- */

struct blocks {
  uint64_t in_slabs; /* free, with those freed by other threads */
  uint64_t cached, cached_bytes;
  uint64_t out_bytes; /* of blocks outside slabs: live, or cached */
};

static void add_cached(struct blocks *found, unsigned class, uint64_t blocks) {
  found->cached += blocks;
  found->cached_bytes += blocks * class_bytes(class);
}

/* Another thread may be changing each of these: a value may be slightly old, and only counts are
 * made of it. */
static void add_magazines(struct blocks *found, struct heap *heap) {
  const struct range_magazines *ranges = load_relaxed(&heap->ranges_shown);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    add_cached(found, class, magazine_count_shown(&heap->magazines[class]));
  if (ranges) found->cached_bytes += load_relaxed(&ranges->bytes);
}

static void add_quarantine(struct blocks *found, struct heap *heap) {
  struct quarantine *quarantine = load_relaxed(&heap->quarantine_shown);
  if (!quarantine) return;
  for (unsigned index = 0; index < QUARANTINE_PLACES; index++) {
    uintptr_t block = load_relaxed(&quarantine->blocks[index]);
    uint32_t entry = block ? owner_map_entry(block) : MAP_CLASS_MASK;
    if (map_slab_class(entry) < SLAB_CLASS_COUNT) add_cached(found, map_slab_class(entry), 1);
  }
}

/* The slot after the slab that begins at this one, if one does. */
static unsigned add_slab(struct blocks *found, struct slab_chunk *chunk, unsigned slot) {
  struct slab *slab = &chunk->slabs[slot];
  if (load_relaxed(&slab->state) != SLOT_ACTIVE) return slot + 1;
  const struct slab_shape *shape = &slab_shapes[load_relaxed(&slab->class_shown)];
  const ATOMIC(uint64_t) *remote = slab_remote_bits(chunk, slot, shape);
  unsigned blocks = load_relaxed(&slab->free_local_shown);
  for (unsigned word = 0; word < shape->word_count; word++)
    blocks += count_bits(load_relaxed(&remote[word]));
  found->in_slabs += blocks;
  if (blocks < shape->capacity)
    found->out_bytes += (uint64_t)(shape->capacity - blocks) * shape->block_bytes;
  return slot + shape->slot_count;
}

static void count_blocks(struct blocks *found) {
  size_t end = load_relaxed(&window.granule_count) / GRANULES_PER_CHUNK;
  for (size_t chunk = 0; chunk < end; chunk++) {
    uintptr_t record = (uintptr_t)chunk_metadata(chunk);
    if (!record || record & CHUNK_IS_RANGES) continue;
    struct slab_chunk *slabs = slab_chunk_of(chunk * GRANULES_PER_CHUNK);
    for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB;) slot = add_slab(found, slabs, slot);
  }
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    struct heap *heap = heap_of_owner(owner);
    add_magazines(found, heap);
    add_quarantine(found, heap);
  }
}

/* ---- the figures ----------------------------------------------------------------------------- */

/* Parts are read one after the other while threads run, and may exceed the whole by a little. */
static uint64_t what_is_left(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}
static uint64_t smaller(uint64_t one, uint64_t other) { return one < other ? one : other; }

void glibc_figures_take(struct glibc_figures *figures) {
  struct snapshot snapshot;
  struct blocks blocks = {0};
  snapshot_take(&snapshot);
  count_blocks(&blocks);
  uint64_t live_bytes = what_is_left(blocks.out_bytes + snapshot.large_live_bytes,
                                     blocks.cached_bytes + snapshot.uncounted_bytes);
  uint64_t held_bytes = what_is_left(snapshot.committed_bytes, snapshot.big_live_bytes);
  uint64_t not_live_bytes = what_is_left(held_bytes, live_bytes);
  uint64_t cached_bytes = smaller(blocks.cached_bytes, not_live_bytes);
  uint64_t free_bytes = not_live_bytes - cached_bytes;
  uint64_t system_bytes = live_bytes + not_live_bytes, peak_bytes = snapshot.committed_peak_bytes;
  *figures = (struct glibc_figures){
      .system_bytes = system_bytes,
      .system_peak_bytes = peak_bytes > system_bytes ? peak_bytes : system_bytes,
      .in_use_bytes = live_bytes,
      .free_blocks = blocks.in_slabs + range_count_dirty(&stray_counters),
      .free_bytes = free_bytes,
      .cached_blocks = blocks.cached,
      .cached_bytes = cached_bytes,
      .keep_bytes = smaller(snapshot.dirty_free_bytes, free_bytes),
      .mmap_blocks = snapshot.big_live_blocks,
      .mmap_bytes = snapshot.big_live_bytes,
      .mmap_peak_blocks = snapshot.big_peak_blocks,
      .mmap_peak_bytes = snapshot.big_peak_bytes,
  };
}

/* ---- malloc_info ----------------------------------------------------------------------------- */

static void write_total(struct text *text, const char *type, uint64_t blocks, uint64_t bytes) {
  text_format(text, "<total type=\"%s\" count=\"%zu\" size=\"%zu\"/>\n", type, blocks, bytes);
}

static void write_free_totals(struct text *text, const struct glibc_figures *figures) {
  write_total(text, "fast", figures->cached_blocks, figures->cached_bytes);
  write_total(text, "rest", figures->free_blocks, figures->free_bytes);
}

static void write_system(struct text *text, const struct glibc_figures *figures) {
  text_format(text,
              "<system type=\"current\" size=\"%zu\"/>\n<system type=\"max\" size=\"%zu\"/>\n"
              "<aspace type=\"total\" size=\"%zu\"/>\n<aspace type=\"mprotect\" size=\"%zu\"/>\n",
              figures->system_bytes, figures->system_peak_bytes, figures->system_bytes,
              figures->system_bytes);
}

/* Reported as one heap: threads' heaps pass memory on to each other. */
void report_as_malloc_info(struct text *text) {
  struct glibc_figures figures;
  glibc_figures_take(&figures);
  text_string(text, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n");
  write_free_totals(text, &figures);
  write_system(text, &figures);
  text_string(text, "</heap>\n");
  write_free_totals(text, &figures);
  write_total(text, "mmap", figures.mmap_blocks, figures.mmap_bytes);
  write_system(text, &figures);
  text_string(text, "</malloc>\n");
}

/* ---- malloc_stats ---------------------------------------------------------------------------- */

void report_as_malloc_stats(struct text *text) {
  struct glibc_figures figures;
  glibc_figures_take(&figures);
  text_format(text,
              "Arena 0:\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
              "Total (incl. mmap):\nsystem bytes     = %10zu\nin use bytes     = %10zu\n"
              "max mmap regions = %10zu\nmax mmap bytes   = %10zu\n",
              figures.system_bytes, figures.in_use_bytes, figures.system_bytes + figures.mmap_bytes,
              figures.in_use_bytes + figures.mmap_bytes, figures.mmap_peak_blocks,
              figures.mmap_peak_bytes);
  report_as_text(text);
}
