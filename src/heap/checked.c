#include "heap/checked.h"

#include <string.h>

#include "config/options.h"
#include "guard/pointer.h"
#include "guard/trailer.h"
#include "heap/batch.h"
#include "heap/class_figures.h"
#include "heap/quarantine.h"
#include "report/report.h"
#include "slab/gate.h"
#include "slab/slab.h"
#include "tier/big.h"

/* Not where a slow path has its latch: then another thread may wait for us, which we would wait for. */
static bool may_walk(void) {
  const struct heap *heap = heap_of_thread;
  return !heap_is_real(heap) || load_relaxed(&heap->owner.latch) == LATCH_FREE;
}

void checked_init(void) {
  if (!options.harden) return;
  trailer_init();
  misuse_may_walk = may_walk;
}

static bool is_in_slab(uint32_t entry) { return (entry & MAP_CLASS_MASK) < SLAB_CLASS_COUNT; }

/* ---- live bits ------------------------------------------------------------------------------------------- */

static ATOMIC(uint64_t) *live_word(const struct slab *slab, unsigned index) {
  size_t granule = granule_of(slab->base);
  struct superslab *superslab = superslab_of_chunk(granule / GRANULES_PER_CHUNK);
  return &superslab->live[granule % GRANULES_PER_CHUNK * WIDE_WORDS + index / 64];
}

static uint64_t live_bit(unsigned index) { return UINT64_C(1) << index % 64; }

static bool is_live(const struct slab *slab, unsigned index) {
  /* acquire: the trailer that was written before the bit was set; pairs with set_live. */
  return load_acquire(live_word(slab, index)) & live_bit(index);
}

/* seq (release would do): the trailer before the bit. */
static void set_live(const struct slab *slab, unsigned index) {
  fetch_or_seq(live_word(slab, index), live_bit(index));
}

/* True for one caller only, however many free the block: what follows is his alone.  seq: one order of all who change
 * the word; pairs with itself and with set_live. */
static bool clear_live(const struct slab *slab, unsigned index) {
  return fetch_and_seq(live_word(slab, index), ~live_bit(index)) & live_bit(index);
}

/* ---- slabs: malloc ---------------------------------------------------------------------------------------- */

/* A class whose blocks have the alignment and room for a trailer; SLAB_CLASS_COUNT when there is none. */
static unsigned class_with_room(size_t size, size_t alignment) {
  if (size > MID_MAX_BYTES - TRAILER_BYTES) return SLAB_CLASS_COUNT;
  return slab_class_of(size + TRAILER_BYTES, alignment);
}

static void *take_at_random(struct heap *heap, unsigned class) {
  struct owner *owner = &heap->owner;
  latch_take(owner);
  owner_note_work(owner);
  struct slab *slab = owner->bins[class].current;
  if (!slab || !slab->free_local) slab = gate_pass(owner, class);
  void *block = slab ? slab_take_at_random(slab, owner, quarantine_random(heap)) : NULL;
  latch_give(owner);
  return block;
}

static void *allocate_in_slab(struct heap *heap, unsigned class,
                              const struct allocation *allocation) {
  size_t size = allocation->size;
  uintptr_t block = (uintptr_t)take_at_random(heap, class);
  if (!block) return NULL;
  const struct slab *slab = slab_of_block(block);
  quarantine_check_untouched(block, slab);
  trailer_write(block, slab->block_bytes, size, allocation->maker);
  set_live(slab, (unsigned)slab_block_index(&slab_shapes[slab->class], block - slab->base));
  class_figures_need(heap);
  class_figures_refilled(heap, class, 1);
  class_figures_sampled(heap, class, size);
  return (void *)block;
}

/* ---- ranges: malloc ---------------------------------------------------------------------------------------- */

/*   granule 0                                                        last granule
 *   [ guard page | not used ][ block: requested bytes, slack, trailer ][ guard page ]
 *
 * A block with an alignment above a page's has no page before it; the end is guarded all the same. */
struct layout {
  size_t granules;
  size_t front_bytes; /* before the block, at least */
};

static struct layout layout_for(size_t size, size_t alignment) {
  size_t page_bytes = os_page_bytes();
  bool has_front = alignment <= page_bytes;
  size_t front_bytes = has_front ? page_bytes : 0;
  size_t bytes = front_bytes + size + TRAILER_BYTES + page_bytes + (has_front ? alignment : 0);
  return (struct layout){.granules = (bytes + GRANULE_BYTES - 1) >> GRANULE_SHIFT,
                         .front_bytes = front_bytes};
}

static uintptr_t end_of_range(size_t granule) {
  return granule_address(granule + range_info(granule)->granules) - os_page_bytes();
}

/* As far to the right as the alignment lets it; the colour's field holds no more than a granule. */
static size_t place_in(size_t granule, const struct layout *layout, size_t size, size_t alignment) {
  if (!layout->front_bytes) return 0;
  uintptr_t last = end_of_range(granule) - TRAILER_BYTES - size;
  size_t unit = alignment < sizeof(void *) * 2 ? sizeof(void *) * 2 : alignment;
  size_t offset = round_down(last, unit) - granule_address(granule);
  size_t most = round_down(UINT16_MAX, unit);
  return offset < most ? offset : most;
}

static void *allocate_range(struct heap *heap, const struct allocation *allocation) {
  size_t size = allocation->size, page_bytes = os_page_bytes();
  struct layout layout = layout_for(size, allocation->alignment);
  if (layout.granules > load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK) return NULL;
  struct range_request range = {layout.granules, alignment_granules(allocation->alignment),
                                heap->owner.number, FROM_ANY};
  size_t granule = range_take(&range, &heap->owner.counters);
  if (granule == NO_GRANULE) return NULL;
  struct range_info *info = range_info(granule);
  info->site = allocation->site;
  info->colour_bytes = (uint16_t)place_in(granule, &layout, size, allocation->alignment);
  uintptr_t block = range_block(granule);
  if (layout.front_bytes) os_close_pages((void *)granule_address(granule), page_bytes);
  os_close_pages((void *)end_of_range(granule), page_bytes);
  trailer_write(block, end_of_range(granule) - block, size, allocation->maker);
  range_note_begin(granule);
  big_note_taken(granule, size, &heap->owner.counters);
  return (void *)block;
}

void *checked_allocate(struct heap *heap, struct allocation *allocation) {
  unsigned class = class_with_room(allocation->size, allocation->alignment);
  allocation->is_zero = true;
  if (class < SLAB_CLASS_COUNT) return allocate_in_slab(heap, class, allocation);
  return allocate_range(heap, allocation);
}

/* ---- questions ---------------------------------------------------------------------------------------------- */

/* Bytes from the block's begin to the end of its trailer. */
static size_t capacity_of(uintptr_t block, uint32_t entry) {
  if (is_in_slab(entry)) return class_block_bytes[entry & MAP_CLASS_MASK];
  return end_of_range(granule_of(block)) - block;
}

/* Whether a live block begins at the address; says so when not. */
static bool is_block(uintptr_t address, uint32_t entry, const char *verb) {
  if (!is_in_slab(entry)) {
    if (range_block_begins_at(address)) return true;
    pointer_fail(verb, address);
    return false;
  }
  const struct slab *slab = slab_of_block(address);
  unsigned index = slab_index_of(slab, address, verb);
  if (index == NO_BLOCK) return false;
  if (is_live(slab, index)) return true;
  struct block_description block = slab_describe(slab, address);
  report_double_free(verb, address, &block);
  return false;
}

/* What was asked for; says so when somebody wrote behind that. */
static size_t check_end(uintptr_t block, uint32_t entry, const char *verb) {
  size_t capacity_bytes = capacity_of(block, entry), requested_bytes;
  bool is_whole = trailer_read(block, capacity_bytes, &requested_bytes);
  size_t overflow = is_whole ? trailer_find_overflow(block, capacity_bytes, requested_bytes) : 0;
  if (LIKELY(is_whole && !overflow)) return requested_bytes;
  if (!is_whole) requested_bytes = overflow = capacity_bytes - TRAILER_BYTES;
  struct block_description description = pointer_describe(block, entry, requested_bytes);
  report_overflow(verb, block, overflow, is_whole, &description);
  return requested_bytes;
}

bool checked_slab_block(const struct slab *slab, unsigned index, size_t *requested_bytes) {
  if (!is_live(slab, index)) return false;
  uintptr_t block = slab->base + (size_t)index * slab->block_bytes;
  if (!trailer_read(block, slab->block_bytes, requested_bytes))
    *requested_bytes = slab->block_bytes - TRAILER_BYTES; /* overwritten: as much as it can be */
  return true;
}

size_t checked_range_block(size_t granule, bool is_safe) {
  uintptr_t block = range_block(granule);
  size_t capacity_bytes = end_of_range(granule) - block, requested_bytes;
  uint64_t last_word;
  const void *trailer = (const void *)(block + capacity_bytes - TRAILER_BYTES);
  bool is_there = !is_safe || os_read_safely(&last_word, trailer, sizeof last_word);
  if (is_there && trailer_read(block, capacity_bytes, &requested_bytes)) return requested_bytes;
  return capacity_bytes - TRAILER_BYTES;
}

enum block_kind checked_ask(uintptr_t block, uint32_t entry, const char *verb,
                            size_t *requested_bytes) {
  if (!is_block(block, entry, verb)) return BLOCK_NONE;
  *requested_bytes = check_end(block, entry, verb);
  return BLOCK_OWN;
}

bool checked_resize(uintptr_t block, size_t bytes) {
  uint32_t entry = owner_map_entry(block);
  size_t capacity_bytes = capacity_of(block, entry);
  bool fits = bytes + TRAILER_BYTES <= capacity_bytes && bytes >= capacity_bytes / 2 &&
              capacity_bytes - TRAILER_BYTES - bytes <= SLACK_MAX_BYTES;
  if (fits) trailer_write(block, capacity_bytes, bytes, trailer_maker(block, capacity_bytes));
  return fits;
}

/* ---- what made it ------------------------------------------------------------------------------------------- */

/* Programs that have operators of their own make blocks by malloc that others' inline code deletes. */
static bool operators_are_ours(void) {
  static const char *const operators[] = {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"};
  for (unsigned index = 0; index < sizeof operators / sizeof operators[0]; index++)
    if (!os_symbol_is_ours(operators[index])) return false;
  return true;
}

/* `maker` is what the caller takes the block for. */
static void check_maker(uintptr_t block, uint32_t entry, size_t requested_bytes, const char *verb,
                        enum maker maker) {
  static const char *const names[] = {
      [MADE_BY_MALLOC] = "malloc", [MADE_BY_NEW] = "new", [MADE_BY_NEW_ARRAY] = "new[]"};
  size_t capacity_bytes = capacity_of(block, entry);
  enum maker made_by = trailer_maker(block, capacity_bytes);
  if (LIKELY(made_by == maker) || !options.harden_operators) return;
  if (!trailer_read(block, capacity_bytes, &requested_bytes) || !operators_are_ours()) return;
  struct block_description description = pointer_describe(block, entry, requested_bytes);
  report_wrong_maker(verb, block, names[made_by], &description);
}

void checked_become_mallocs(uintptr_t block) {
  uint32_t entry = owner_map_entry(block);
  size_t capacity_bytes = capacity_of(block, entry), requested_bytes;
  if (!trailer_read(block, capacity_bytes, &requested_bytes)) return; /* was reported */
  if (LIKELY(trailer_maker(block, capacity_bytes) == MADE_BY_MALLOC)) return;
  check_maker(block, entry, requested_bytes, "realloc", MADE_BY_MALLOC);
  trailer_write(block, capacity_bytes, requested_bytes, MADE_BY_MALLOC);
}

/* ---- free --------------------------------------------------------------------------------------------------- */

/* HAKMEM_HARDEN=2: the blocks beside the one that is freed, if they are live.  Their trailers alone are looked at,
 * which are changed in one store: their owners may be resizing them. */
static void check_neighbour(const struct slab *slab, unsigned index) {
  size_t requested_bytes;
  uintptr_t block = slab->base + (size_t)index * slab->block_bytes;
  if (index >= slab->capacity || !is_live(slab, index)) return;
  if (LIKELY(trailer_read(block, slab->block_bytes, &requested_bytes))) return;
  if (!is_live(slab, index)) return; /* freed meanwhile */
  struct block_description description = slab_describe(slab, block);
  report_overflow("free of a neighbour", block, slab->block_bytes - TRAILER_BYTES, false,
                  &description);
}

/* What is left to say before a block that was live is gone. */
static void check_freed(uintptr_t block, uint32_t entry, enum maker maker) {
  static const char *const verbs[] = {
      [MADE_BY_MALLOC] = "free", [MADE_BY_NEW] = "delete", [MADE_BY_NEW_ARRAY] = "delete[]"};
  size_t requested_bytes = check_end(block, entry, "free");
  check_maker(block, entry, requested_bytes, verbs[maker], maker);
}

static void free_in_slab(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker) {
  struct slab *slab = slab_of_block(block);
  unsigned index = slab_index_of(slab, block, "free");
  if (index == NO_BLOCK) return;
  if (!clear_live(slab, index)) {
    struct block_description description = slab_describe(slab, block);
    report_double_free("free", block, &description);
    return;
  }
  check_freed(block, entry, maker);
  if (options.harden > 1) {
    check_neighbour(slab, index - 1);
    check_neighbour(slab, index + 1);
  }
  memset((void *)block, 0, slab->block_bytes);
  void *blocks[] = {(void *)block};
  if (heap)
    quarantine_add(heap, block, slab->block_bytes);
  else
    batch_free(NULL, blocks, 1, &stray_counters);
}

static void free_range(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker) {
  if (!is_block(block, entry, "free")) return;
  size_t granule = granule_of(block);
  if (!big_note_freed(granule, heap_counters(heap))) {
    pointer_fail("free", block); /* another thread was faster */
    return;
  }
  check_freed(block, entry, maker);
  size_t bytes = (size_t)range_info(granule)->granules << GRANULE_SHIFT;
  void *begin = (void *)granule_address(granule);
  if (!os_close_pages(begin, bytes)) memset((void *)block, 0, capacity_of(block, entry));
  if (heap) {
    quarantine_add_range(heap, granule);
    return;
  }
  quarantine_give_range(granule, &stray_counters);
}

void checked_free(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker) {
  if (heap) heap_enter(heap);
  if (is_in_slab(entry))
    free_in_slab(heap, block, entry, maker);
  else
    free_range(heap, block, entry, maker);
  if (heap) heap_leave(heap);
}
