#include "heap/sized_free.h"

#include "cache/starter.h"
#include "foreign/operators.h"
#include "heap/ask.h"
#include "heap/fast_path.h"
#include "named/named_heap.h"
#include "ranges/big.h"
#include "report/report.h"

/* A fault in hardened mode. Else the block is known without its size, and real programs survive it:
 * only the first is reported. */
static void report_size(uintptr_t address, size_t size, size_t usable_bytes) {
  static ATOMIC(bool) is_told;
  bool is_warning = !window.hardened_bit;
  /* orders nothing; only the first thread reports */
  if (is_warning && exchange_acquire(&is_told, true)) return;
  struct block_description block = named_describe(address, owner_map_entry(address), usable_bytes);
  report_misuse(&(struct misuse){"mismatched", "free", address, &block, 0, is_warning},
                "size argument %zu does not match the block of %zu bytes%s", size, usable_bytes,
                is_warning ? "; freed anyway (reported once)" : "");
}

static bool fits_size(const void *block, enum kind kind, size_t size, size_t alignment,
                      bool is_exact, size_t usable_bytes) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  if (kind == KIND_foreign) return true;
  if (kind_knows_request(kind)) return size == usable_bytes;
  if (UNLIKELY(map_entry_is_named(entry))) return size <= usable_bytes;
  if (size > REQUEST_MAX_BYTES) return false;
  if (map_slab_class(entry) >= SLAB_CLASS_COUNT)
    usable_bytes = heap_range_bytes((uintptr_t)block, entry);
  return usable_bytes == heap_block_bytes(size, alignment) ||
         (!is_exact && heap_shrinks_in_place(size, usable_bytes));
}

/* A program's own operator new may request more than it was asked for, and leave delete to
 * hakmem's. */
static bool may_be_larger(enum maker maker) {
  return maker != MADE_BY_MALLOC && !operators_are_ours();
}

/* Frees the block even if its size does not fit, after a report. */
static void free_checked(void *block, size_t size, size_t alignment, bool is_exact,
                         enum maker maker) {
  size_t usable_bytes;
  enum kind kind = block ? heap_ask(block, "free", &usable_bytes) : KIND_none;
  if (kind == KIND_none) return;
  if (UNLIKELY(!fits_size(block, kind, size, alignment, is_exact, usable_bytes)) &&
      !may_be_larger(maker))
    report_size((uintptr_t)block, size, usable_bytes);
  heap_free_made(block, maker);
}

/* Whether such a request gets a block of the class, or got one before a fitted class was made: the
 * smallest with room. A thread's first ones begin at cache lines (starter_take). */
static bool is_class_for(size_t size, size_t alignment, unsigned class) {
  size_t bytes = round_up(size | !size, alignment);
  size_t floor = class_floor_bytes(class);
  return bytes <= class_bytes(class) &&
         (bytes > floor || (round_up(bytes, CACHE_LINE_BYTES) > floor && starter_is_there()));
}

/* Checks the class in the owner map, which decides nearly always; a block that may have been shrunk
 * is examined. */
static void free_said(void *block, size_t size, size_t alignment, bool is_exact, enum maker maker) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  unsigned class = map_class(entry);
  bool fits = map_entry_is_live(entry) && class < CLASS_COUNT && size <= LARGE_MAX_BYTES &&
              alignment <= STEPPED_MAX_BYTES && is_class_for(size, alignment, class);
  if (LIKELY(fits))
    heap_free(block);
  else
    free_checked(block, size, alignment, is_exact, maker);
}

NOINLINE void heap_delete_sized_slow(void *block, size_t size) {
  free_said(block, size, 1, true, MADE_BY_NEW);
}
NOINLINE void heap_delete_array_sized_slow(void *block, size_t size) {
  free_said(block, size, 1, true, MADE_BY_NEW_ARRAY);
}
NOINLINE void heap_free_sized_slow(void *block, size_t size) {
  free_said(block, size, 1, false, MADE_BY_MALLOC);
}

void heap_free_sized_loosely(void *block, size_t size, size_t alignment, enum maker maker) {
  free_said(block, size, alignment, false, maker);
}
