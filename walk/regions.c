/* The regions of an arena's chunks: [heap] of the main arena, heaps of 64 MiB of the others. */
#include <stdlib.h>
#include <string.h>

#include "heap.h"

enum { HEAPS_MAX = 1 << 16, RUN = 16, SEARCHED_BYTES = 1 << 20 };

struct heap_info {
  uint64_t arena, before, bytes, mprotected_bytes;
};

void region_add(struct heap *heap, const struct region *region) {
  if (region_of(heap, region->begin) || region_of(heap, region->mapped_end - 1)) return;
  if (heap->region_count % 64 == 0)
    heap->regions = allocated(heap->regions, (heap->region_count + 64) * sizeof *heap->regions);
  size_t place = heap->region_count++;
  for (; place > 0 && heap->regions[place - 1].begin > region->begin; --place)
    heap->regions[place] = heap->regions[place - 1];
  heap->regions[place] = *region;
}

const struct region *region_of(const struct heap *heap, uint64_t address) {
  size_t low = first_beyond(heap->regions, heap->region_count, sizeof *heap->regions,
                            offsetof(struct region, mapped_end), address);
  if (low == heap->region_count || heap->regions[low].begin > address) return NULL;
  return &heap->regions[low];
}

bool is_run(const struct heap *heap, const struct region *region, uint64_t chunk) {
  uint64_t header[2], before = 0;
  for (unsigned i = 0; i < RUN; ++i) {
    if (chunk + HEADER_BYTES > region->end ||
        !memory_peek(heap->target, chunk, header, sizeof header))
      return false;
    uint64_t bytes = header[1] & ~(uint64_t)FLAGS;
    bool is_fence = i > 0 && bytes == HEADER_BYTES;
    if (i > 0 && !(header[1] & WAS_IN_USE) && header[0] != before) return false;
    if (is_fence) return true;
    if (bytes < MINIMUM_BYTES || bytes % CHUNK_ALIGNMENT || bytes > region->end - chunk)
      return false;
    if ((header[1] & IS_MMAPPED) || (!region->heap_info && (header[1] & NOT_MAIN))) return false;
    chunk += bytes;
    before = bytes;
    if (chunk == region->end) return true;
  }
  return true;
}

static uint64_t mapped_end_of(const struct target *target, uint64_t address) {
  const struct mapping *mapping = mapping_of(target, address);
  const struct mapping *last = target->mappings + target->mapping_count;
  if (mapping == NULL) return 0;
  while (mapping + 1 < last && mapping[1].begin == mapping->end && mapping[1].is_writable &&
         strcmp(mapping[1].path, mapping->path) == 0)
    ++mapping;
  return mapping->end;
}

uint64_t region_refresh(struct heap *heap, struct region *region) {
  uint64_t top = 0, size = 0;
  const struct arena *arena = &heap->arenas[region->arena];
  memory_read(heap->target, arena->address + heap->layout.bins_offset - 16, &top, sizeof top);
  bool has_top = top >= region->begin && top < region->begin + (UINT64_C(1) << 46) &&
                 (region->heap_info == 0 || top < region->heap_info + heap->layout.heap_bytes);
  if (has_top && top >= region->mapped_end) {
    target_refresh(heap->target);
    region->mapped_end = mapped_end_of(heap->target, region->begin);
    has_top = top < region->mapped_end;
  }
  if (has_top) memory_read(heap->target, top + 8, &size, sizeof size);
  size &= ~(uint64_t)FLAGS;
  if (has_top && size > region->mapped_end - top) {
    target_refresh(heap->target);
    region->mapped_end = mapped_end_of(heap->target, region->begin);
    has_top = top < region->mapped_end;
  }
  if (has_top) {
    bool is_plausible = size >= HEADER_BYTES && size <= region->mapped_end - top;
    region->end = is_plausible ? top + size : region->mapped_end;
    return top;
  }
  struct heap_info info = {0};
  if (region->heap_info) {
    memory_read(heap->target, region->heap_info, &info, sizeof info);
    if (info.bytes <= heap->layout.heap_bytes) region->end = region->heap_info + info.bytes;
    if (region->end > region->mapped_end)
      region->mapped_end = mapped_end_of(heap->target, region->begin);
    if (region->end > region->mapped_end) region->end = region->mapped_end;
  }
  return UINT64_MAX;
}

/* Heaps lie at multiples of their size, which a tunable (huge pages) changes. */
static uint64_t heap_bytes_of(const struct target *target, const struct arena *arena) {
  static const uint64_t SIZES[] = {UINT64_C(64) << 20,  UINT64_C(8) << 20, UINT64_C(4) << 30,
                                   UINT64_C(128) << 20, UINT64_C(2) << 30, UINT64_C(256) << 10};
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; ++i) {
    struct heap_info info;
    uint64_t begin = round_down(arena->top, SIZES[i]);
    if (memory_read(target, begin, &info, sizeof info) == sizeof info &&
        info.arena == arena->address && info.bytes <= SIZES[i])
      return SIZES[i];
  }
  return 0;
}

static void add_heaps(struct heap *heap, size_t index) {
  struct arena *arena = &heap->arenas[index];
  const struct target *target = heap->target;
  memory_read(target, arena->address + heap->layout.bins_offset - 16, &arena->top, 8);
  uint64_t bytes = heap_bytes_of(target, arena);
  if (bytes == 0) return;
  uint64_t first = round_down(arena->address, target->page_bytes),
           at = round_down(arena->top, bytes);
  heap->layout.heap_bytes = bytes;
  heap->layout.heap_info_bytes = arena->address - first;
  for (size_t count = 0; at != 0 && count < HEAPS_MAX && !region_of(heap, at + bytes / 2);
       ++count) {
    struct heap_info info;
    if (memory_read(target, at, &info, sizeof info) < sizeof info || info.arena != arena->address ||
        info.bytes > bytes)
      return;
    uint64_t begin = at + heap->layout.heap_info_bytes;
    if (at == first)
      begin = round_up(arena->address + heap->layout.bins_offset + BINS_BYTES + 56, 16);
    struct region region = {at, begin, at + info.bytes, mapped_end_of(target, at), 0, index, at};
    if (region.mapped_end < region.end) { /* it has grown */
      target_refresh(heap->target);
      region.mapped_end = mapped_end_of(target, at);
    }
    if (region.mapped_end > at + bytes) region.mapped_end = at + bytes; /* merged with the next */
    if (region.mapped_end < region.end || region.end < begin) return;
    region_add(heap, &region);
    at = info.before;
  }
}

static void add_main(struct heap *heap, size_t index) {
  const struct target *target = heap->target;
  const struct arena *arena = &heap->arenas[index];
  uint64_t begin = index == 0 ? heap->parameters.sbrk_base : 0;
  bool is_known = begin != 0 && is_heap_like(target, begin);
  if (!is_known) {
    const struct mapping *mapping = mapping_of(target, arena->top);
    if (mapping == NULL || arena->system_bytes == 0 || !arena->is_contiguous) return;
    begin = mapping->begin;
  }
  begin = round_up(begin, CHUNK_ALIGNMENT);
  uint64_t end = mapped_end_of(target, begin);
  struct region region = {begin, begin, end, end, 0, index, 0};
  memory_forget();
  for (uint64_t at = begin; !is_known && at < begin + SEARCHED_BYTES && at < end; at += 16)
    if (is_run(heap, &region, at)) { /* a static program has its TLS before that */
      region.mapped_begin = region.begin = at;
      break;
    }
  region_add(heap, &region);
}

void regions_find(struct heap *heap) {
  for (size_t i = 0; i < heap->arena_count; ++i) {
    if (heap->arenas[i].is_main) {
      add_main(heap, i);
    } else {
      add_heaps(heap, i);
    }
  }
}
