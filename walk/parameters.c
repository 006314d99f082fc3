/* malloc's parameters, mp_: in the same data as main_arena, by the relations of their values. */
#include "heap.h"

enum { AROUND_BYTES = 1 << 16, BINS_MAX = 128, COUNT_MAX = 65535 };
enum { HUGE_BEFORE = 40, HUGE_END = 1 << 30 }; /* thp_pagesize, before mmapped_mem */

/* Before 2.35 four ints stand before mmapped_mem; later another one before them, and a gap. */
struct counts {
  int32_t mmaps, mmaps_max, max_mmaps, has_threshold;
};

struct rest {
  uint64_t mmapped_bytes, max_mmapped_bytes, sbrk_base, tcache_bins, tcache_max_bytes, tcache_count;
};

static bool are_parameters(const struct heap *heap, const struct counts *counts,
                           const struct rest *rest) {
  uint64_t page_bytes = heap->target->page_bytes;
  if (counts->mmaps < 0 || counts->mmaps > counts->max_mmaps || counts->mmaps_max < 0) return false;
  if (counts->has_threshold < 0 || counts->has_threshold > 1) return false;
  if (rest->mmapped_bytes % page_bytes || rest->mmapped_bytes > rest->max_mmapped_bytes)
    return false;
  if ((counts->mmaps == 0) != (rest->mmapped_bytes == 0)) return false;
  if (rest->tcache_bins == 0 || rest->tcache_bins > BINS_MAX) return false;
  if (rest->tcache_count > COUNT_MAX || rest->tcache_max_bytes > 1 << 23) return false;
  if (rest->tcache_max_bytes < MINIMUM_BYTES - 8) return false;
  return rest->sbrk_base == 0 || is_heap_like(heap->target, rest->sbrk_base);
}

void parameters_find(struct heap *heap) {
  static uint8_t bytes[2 * AROUND_BYTES];
  if (heap->arena_count == 0) return;
  uint64_t begin = heap->arenas[0].address - AROUND_BYTES;
  const struct mapping *mapping = mapping_of(heap->target, heap->arenas[0].address);
  if (mapping && mapping->begin > begin) begin = mapping->begin;
  size_t got = memory_read(heap->target, begin, bytes, sizeof bytes);
  for (size_t i = 24; i + sizeof(struct rest) <= got; i += 8) {
    struct rest rest;
    struct counts old, new;
    __builtin_memcpy(&rest, bytes + i, sizeof rest);
    __builtin_memcpy(&old, bytes + i - 16, sizeof old);
    __builtin_memcpy(&new, bytes + i - 20, sizeof new);
    bool is_old = are_parameters(heap, &old, &rest);
    if (!is_old && !are_parameters(heap, &new, &rest)) continue;
    struct parameters *found = &heap->parameters;
    found->address = begin + i;
    found->sbrk_base = rest.sbrk_base;
    found->mmapped_bytes = rest.mmapped_bytes;
    found->mmaps = (uint64_t)(is_old ? old.mmaps : new.mmaps);
    found->tcache_count = rest.tcache_count;
    uint64_t huge = is_old || i < HUGE_BEFORE ? 0 : word_at(bytes + i - HUGE_BEFORE);
    bool is_huge = huge > heap->target->page_bytes && !(huge & (huge - 1)) && huge < HUGE_END;
    found->trim_unit = is_huge ? huge : heap->target->page_bytes;
    if (rest.sbrk_base != 0) return;
  }
}
