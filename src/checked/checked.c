#include "checked/checked.h"

#include "cache/class_figures.h"
#include "cache/divert.h"
#include "cache/quarantine.h"
#include "checked/checked_range.h"
#include "config/options.h"
#include "foreign/operators.h"
#include "foreign/pointer.h"
#include "hardened/beside.h"
#include "hardened/live.h"
#include "hardened/nothing.h"
#include "hardened/trailer.h"
#include "hardened/wipe.h"
#include "named/named_heap.h"
#include "profile/recording.h"
#include "ranges/range.h"
#include "report/report.h"
#include "slab/batch_free.h"
#include "slab/slab.h"

/* False where this thread holds the latch of its heap or of a named heap: another thread may wait
 * for it, while this one would wait for that thread. */
static bool may_walk(void) {
  const struct heap *heap = heap_of_thread;
  if (heap_is_real(heap) && load_relaxed(&heap->owner.latch) != LATCH_FREE) return false;
  /* relaxed: this thread's own number was written by itself */
  const struct hak_heap *named;
  for (uint32_t number = 0; (named = named_next(&number));)
    if ((load_relaxed(&named->owner.latch) & WORD_HOLDER_MASK) == thread_number()) return false;
  return true;
}

RESIDENT void checked_init(void) {
  if (!options.harden) return;
  window.hardened_bit = MAP_HARDENED;
  trailer_init();
  misuse_may_walk = may_walk;
}

static bool is_in_slab(uint32_t entry) { return map_slab_class(entry) < SLAB_CLASS_COUNT; }

/* ---- malloc ---------------------------------------------------------------------------------- */

/* The smallest class has no room for a byte. */
unsigned checked_class_of(size_t size, size_t alignment) {
  if (!is_for_slab(size)) return SLAB_CLASS_COUNT;
  return slab_class_of((size ? size : 1) + TRAILER_BYTES, alignment);
}

/* A block becomes the program's. False when a thread that checks it from beside holds it for a
 * moment; a fork may make that moment last. */
INLINE bool begin_in_slab(uintptr_t block, unsigned class, size_t size, enum maker maker,
                          bool is_shared) {
  quarantine_check_untouched(block, class);
  if (UNLIKELY(!live_begin(live_word(block), block, is_shared))) return false;
  trailer_write_first(block, class_bytes(class), size, maker);
  return true;
}

bool checked_begin(uintptr_t block, unsigned class, size_t size, enum maker maker) {
  return begin_in_slab(block, class, size, maker, os_is_multi_threaded());
}

/* A ready block becomes the program's. 0 also when another thread holds it for a moment. */
INLINE uintptr_t take_ready(struct heap *heap, struct quarantine *quarantine, unsigned class,
                            size_t size, enum maker maker, bool is_shared) {
  uintptr_t block = quarantine_take(quarantine, class);
  if (UNLIKELY(!block)) return 0;
  if (UNLIKELY(!begin_in_slab(block, class, size, maker, is_shared))) {
    quarantine_add(heap, block, class);
    return 0;
  }
  if (options.harden > 1) quarantine_check_latest(quarantine);
  return block;
}

static void *take_of_slab(struct heap *heap, unsigned class, const struct allocation *allocation) {
  size_t size = allocation->size;
  struct quarantine *quarantine = quarantine_of(heap);
  if (UNLIKELY(!quarantine)) return NULL;
  bool is_shared = os_is_multi_threaded();
  for (;;) {
    if (!quarantine->ready_count[class]) {
      if (!quarantine_refill(heap, quarantine, class)) return NULL;
      class_figures_sampled(heap, class, size);
    }
    uintptr_t block = take_ready(heap, quarantine, class, size, allocation->maker, is_shared);
    if (LIKELY(block)) return (void *)block;
  }
}

/* Guarded samples (HAKMEM_GUARD) are drawn on the longer path. */
void *checked_take_ready(struct heap *heap, size_t size, size_t alignment, enum maker maker) {
  struct quarantine *quarantine = heap->quarantine;
  if (UNLIKELY(!quarantine || !size || !is_for_slab(size) || options.guard)) return NULL;
  unsigned class = LIKELY(alignment == 1) ? class_of_size(size + TRAILER_BYTES)
                                          : checked_class_of(size, alignment);
  if (UNLIKELY(class == SLAB_CLASS_COUNT) || heap_may_be_armed_by(heap, ARMED_BY_ANY)) return NULL;
  bool is_shared = os_is_multi_threaded();
  heap_enter(heap);
  uintptr_t block = take_ready(heap, quarantine, class, size, maker, is_shared);
  heap_leave(heap);
  return (void *)block;
}

static void *allocate(struct heap *heap, struct allocation *allocation) {
  if (UNLIKELY(!allocation->size) && allocation->alignment <= NOTHING_ALIGNMENT_MAX) {
    uintptr_t nothing = nothing_take(allocation->alignment);
    if (nothing) return (void *)nothing;
  }
  unsigned class = checked_class_of(allocation->size, allocation->alignment);
  if (class == SLAB_CLASS_COUNT) return checked_range_allocate(heap, allocation);
  allocation->is_zero = is_wiped_wholly(class_bytes(class));
  return take_of_slab(heap, class, allocation);
}

void *checked_allocate(struct heap *heap, struct allocation *allocation) {
  heap_enter(heap);
  void *block = allocate(heap, allocation);
  heap_leave(heap);
  return block;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The facts at the end of a live block: in a slab from its trailer, else from the range record. */
struct end {
  size_t most_bytes, requested_bytes; /* that may be requested; that were */
  enum maker maker;
};

/* False when the trailer was overwritten: then the most bytes count as requested. */
INLINE bool read_end(uintptr_t block, uint32_t entry, struct end *end) {
  if (LIKELY(is_in_slab(entry))) {
    size_t block_bytes = class_bytes(map_slab_class(entry));
    end->most_bytes = end->requested_bytes = block_bytes - TRAILER_BYTES;
    end->maker = trailer_maker(block, block_bytes);
    return trailer_read(block, block_bytes, &end->requested_bytes);
  }
  const struct range_info *info = range_info(granule_of(block));
  end->most_bytes = checked_range_capacity(block);
  end->requested_bytes = end->most_bytes - info->slack_bytes;
  end->maker = info->maker;
  return true;
}

static void write_end(uintptr_t block, uint32_t entry, size_t bytes, enum maker maker) {
  if (is_in_slab(entry))
    trailer_write(block, class_bytes(map_slab_class(entry)), bytes, maker);
  else
    checked_range_write_end(block, bytes, maker);
}

static bool is_live_block(uintptr_t address) {
  return LIKELY(address % LIVE_UNIT_BYTES == 0) && LIKELY(is_live(address));
}

/* Whether a live block begins at the address; reports if not. */
static bool is_block(uintptr_t address, uint32_t entry, const char *verb) {
  if (LIKELY(is_in_slab(entry) ? is_live_block(address) : range_block_begins_at(address)))
    return true;
  if (is_in_slab(entry))
    slab_fail_pointer(slab_of_block(address), address, verb);
  else
    pointer_fail(verb, address);
  return false;
}

COLD static void fail_end(uintptr_t block, uint32_t entry, const char *verb, size_t written) {
  struct end end;
  read_end(block, entry, &end);
  struct block_description description = named_describe(block, entry, end.requested_bytes);
  report_overflow(verb, block, written ? written : end.most_bytes, written != 0, &description);
}

/* Reports a write past the requested bytes. */
INLINE void check_end(uintptr_t block, uint32_t entry, const char *verb, struct end *end) {
  size_t written = 0;
  bool is_whole = read_end(block, entry, end);
  if (LIKELY(is_whole))
    written = trailer_find_overflow(block, end->most_bytes + TRAILER_BYTES, end->requested_bytes);
  if (UNLIKELY(!is_whole || written)) fail_end(block, entry, verb, written);
}

bool checked_slab_block(uintptr_t block, size_t block_bytes, size_t *requested_bytes) {
  if (!is_live(block)) return false;
  if (!trailer_read(block, block_bytes, requested_bytes))
    *requested_bytes = block_bytes - TRAILER_BYTES; /* overwritten: the most that it can be */
  return true;
}

bool checked_ask(uintptr_t block, uint32_t entry, const char *verb, size_t *requested_bytes) {
  struct end end;
  if (!is_block(block, entry, verb)) return false;
  check_end(block, entry, verb, &end);
  *requested_bytes = end.requested_bytes;
  return true;
}

bool checked_resize(uintptr_t block, size_t bytes) {
  uint32_t entry = owner_map_entry(block);
  struct end end;
  read_end(block, entry, &end);
  bool fits = bytes <= end.most_bytes && bytes >= end.most_bytes / 2 &&
              end.most_bytes - bytes <= SLACK_MAX_BYTES;
  if (fits) write_end(block, entry, bytes, end.maker);
  return fits;
}

void checked_shrink(uintptr_t block, size_t bytes) {
  uint32_t entry = owner_map_entry(block);
  struct end end;
  read_end(block, entry, &end);
  if (end.most_bytes - bytes > SLACK_MAX_BYTES) bytes = end.most_bytes - SLACK_MAX_BYTES;
  write_end(block, entry, bytes, end.maker);
}

/* ---- the maker ------------------------------------------------------------------------------- */

COLD static void fail_maker(uintptr_t block, uint32_t entry, enum maker freed_as,
                            const char *verb) {
  struct end end;
  if (!read_end(block, entry, &end) || !operators_mismatch(end.maker, freed_as)) return;
  struct block_description description = named_describe(block, entry, end.requested_bytes);
  report_misuse(&(struct misuse){"mismatched", verb, block, &description, 0, false},
                "the block of %zu bytes was made by %s", end.requested_bytes,
                maker_name(end.maker));
}

enum maker checked_maker(uintptr_t block) {
  struct end end;
  read_end(block, owner_map_entry(block), &end);
  return end.maker;
}

void checked_become_mallocs(uintptr_t block) {
  uint32_t entry = owner_map_entry(block);
  struct end end;
  if (!read_end(block, entry, &end)) return; /* reported already */
  if (LIKELY(end.maker == MADE_BY_MALLOC)) return;
  fail_maker(block, entry, MADE_BY_MALLOC, "realloc");
  write_end(block, entry, end.requested_bytes, MADE_BY_MALLOC);
}

/* The last checks before a live block is gone. */
INLINE void check_freed(uintptr_t block, uint32_t entry, enum maker maker, const char *verb) {
  struct end end;
  check_end(block, entry, verb, &end);
  if (UNLIKELY(end.maker != maker)) fail_maker(block, entry, maker, maker_verb(maker));
}

/* ---- free ------------------------------------------------------------------------------------ */

/* Prefetches the lines that are read later. */
INLINE void fetch_ahead(uintptr_t block, size_t block_bytes) {
  PREFETCH((void *)block);
  PREFETCH((void *)(block + block_bytes - TRAILER_BYTES));
}

/* A thread without a quarantine frees few blocks: it always checks. */
INLINE bool is_time_to_check_beside(struct heap *heap) {
  return UNLIKELY(!heap || !heap->quarantine) || quarantine_is_time_to_check(heap->quarantine);
}

/* The bit is cleared first: a thread that frees the block at the same moment finds it cleared and
 * touches nothing. A named heap's slab may have been released by then, and the block belong to
 * another heap, which keeps it. */
INLINE bool claim(uintptr_t block, ATOMIC(uint64_t) *word, uint32_t entry, const char *verb) {
  bool is_shared = os_is_multi_threaded();
  if (LIKELY(block % LIVE_UNIT_BYTES == 0) && LIKELY(live_end(word, block, is_shared))) {
    if (!map_entry_is_named(entry) || LIKELY(owner_map_entry(block) == entry)) return true;
    live_begin(word, block, is_shared);
  }
  slab_fail_pointer(slab_of_block(block), block, verb);
  return false;
}

/* False, after a report, when the block is not live; else it reads as zero. */
INLINE bool end_in_slab(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                        const char *verb) {
  unsigned class = map_slab_class(entry);
  ATOMIC(uint64_t) *words = live_words(block);
  fetch_ahead(block, class_bytes(class));
  if (UNLIKELY(!claim(block, live_word_of(words, block), entry, verb))) return false;
  recording_remove(block, (void *)block);
  check_freed(block, entry, maker, verb);
  if (UNLIKELY(is_time_to_check_beside(heap))) beside_check(block, class, words);
  wipe_block(block, class_bytes(class));
  return true;
}

/* The quarantine decides when to check the blocks beside this one. */
bool checked_end(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                 const char *verb) {
  if (LIKELY(heap != NULL)) heap_enter(heap);
  if (LIKELY(heap != NULL)) quarantine_of(heap);
  bool was_live = end_in_slab(heap, block, entry, maker, verb);
  if (LIKELY(heap != NULL)) heap_leave(heap);
  return was_live;
}

/* A block that is not live may have been in the middle of a free when the program forked: it is
 * wiped to its end. */
bool checked_end_silently(uintptr_t block, uint32_t entry) {
  size_t block_bytes = class_bytes(map_slab_class(entry)), requested_bytes;
  if (LIKELY(is_live(block))) {
    if (!trailer_read(block, block_bytes, &requested_bytes) ||
        trailer_find_overflow(block, block_bytes, requested_bytes))
      return false;
    live_end(live_word(block), block, os_is_multi_threaded());
    recording_remove(block, (void *)block);
  }
  wipe_block(block, block_bytes);
  return true;
}

INLINE bool free_in_slab(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker) {
  if (UNLIKELY(!end_in_slab(heap, block, entry, maker, "free"))) return false;
  if (LIKELY(heap != NULL)) return quarantine_add(heap, block, map_slab_class(entry));
  void *blocks[] = {(void *)block};
  batch_free(NULL, blocks, 1, &stray_counters);
  return true;
}

bool checked_free(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker) {
  if (LIKELY(heap != NULL)) heap_enter(heap);
  bool went_beyond = free_in_slab(heap, block, entry, maker);
  if (LIKELY(heap != NULL)) heap_leave(heap);
  return went_beyond;
}

void checked_free_range(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                        const char *verb) {
  if (!is_block(block, entry, verb)) return;
  if (LIKELY(heap != NULL)) heap_enter(heap);
  recording_remove(round_down(block, GRANULE_BYTES), (void *)block);
  if (LIKELY(checked_range_end(heap, block, verb))) {
    check_freed(block, entry, maker, verb);
    checked_range_free(heap, block, entry);
  }
  if (LIKELY(heap != NULL)) heap_leave(heap);
}
