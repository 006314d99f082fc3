#include "heap/sized_free.h"

#include "config/options.h"
#include "foreign/operators.h"
#include "heap/ask.h"
#include "heap/fast_path.h"
#include "large/big.h"
#include "named/named_heap.h"
#include "report/report.h"

static void fail_size(uintptr_t address, size_t size, size_t usable_bytes) {
  struct block_description block = named_describe(address, owner_map_entry(address), usable_bytes);
  report_misuse(&(struct misuse){"mismatched", "free", address, &block, 0, false},
                "size argument %zu does not match the block of %zu bytes", size, usable_bytes);
}

/* The block is known without its size, and real programs survive such a delete: only the first is reported. */
static void warn_size(uintptr_t address, size_t size, size_t usable_bytes) {
  static ATOMIC(bool) is_told;
  if (exchange_acquire(&is_told, true)) return; /* orders nothing; only the first thread reports */
  struct block_description block = named_describe(address, owner_map_entry(address), usable_bytes);
  report_misuse(&(struct misuse){"mismatched", "free", address, &block, 0, true},
                "size argument %zu does not match the block of %zu bytes"
                "; freed anyway (reported once)",
                size, usable_bytes);
}

/* The checked path knows the requested bytes. A guarded block knows the size that it was made for. */
static bool fits_size(const void *block, size_t size, size_t alignment, bool is_exact,
                      size_t usable_bytes) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  if (UNLIKELY(map_entry_is_named(entry)) && !options.harden) return size <= usable_bytes;
  bool is_guarded = !is_in_window((uintptr_t)block);
  if (options.harden || (is_guarded && is_exact)) return size == usable_bytes;
  if (size > REQUEST_MAX_BYTES) return false;
  if (is_guarded) return heap_shrinks_in_place(size, usable_bytes);
  if ((entry & MAP_CLASS_MASK) >= SLAB_CLASS_COUNT && !map_entry_is_sampled(entry))
    usable_bytes = heap_range_made_bytes((uintptr_t)block, entry);
  return usable_bytes == heap_block_bytes(size, alignment) ||
         (!is_exact && heap_shrinks_in_place(size, usable_bytes));
}

/* A program's own operator new may request more than it was asked for, and leave delete to hakmem's. */
static bool may_be_larger(enum maker maker) {
  return maker != MADE_BY_MALLOC && !operators_are_ours();
}

/* Frees the block even if its size does not fit, after a report. */
static void free_checked(void *block, size_t size, size_t alignment, bool is_exact,
                         enum maker maker) {
  size_t usable_bytes;
  enum block_kind kind = block ? heap_ask(block, "free", &usable_bytes) : BLOCK_NONE;
  if (kind == BLOCK_NONE) return;
  if (UNLIKELY(kind >= BLOCK_OWN && !fits_size(block, size, alignment, is_exact, usable_bytes)) &&
      !may_be_larger(maker))
    (options.harden ? fail_size : warn_size)((uintptr_t)block, size, usable_bytes);
  if (UNLIKELY(options.harden))
    heap_free_the_long_way(block, maker);
  else
    heap_free(block);
}

/* Whether such a request gets a block of the class: the smallest with room. */
static bool is_class_for(size_t size, size_t alignment, unsigned class) {
  size_t bytes = round_up(size | !size, alignment);
  return bytes <= class_block_bytes[class] && (!class || bytes > class_block_bytes[class - 1]);
}

/* Checks the class in the owner map, which decides nearly always; a block that may have been shrunk is examined. */
static void free_said(void *block, size_t size, size_t alignment, bool is_exact, enum maker maker) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  unsigned class = entry & MAP_CLASS_MASK;
  bool fits = !options.harden && map_entry_is_live(entry) && class < CLASS_COUNT &&
              size <= LARGE_MAX_BYTES && alignment <= STEPPED_MAX_BYTES &&
              is_class_for(size, alignment, class);
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
