/* Chunks that are mappings of their own, also those that the kernel has merged; and the parts of
 * the main arena that it took by mmap. */
#include <stdlib.h>
#include <string.h>

#include "heap.h"

enum { PIECE_BYTES = 1 << 18, PAGE = 4096 };
/* Where a chunk begins in its first page, or, after a large alignment, in a later one: before an
 * address that is a multiple of a power of 2. */
static const uint64_t PLACES[] = {0, 48, 112, 240, 496, 1008, 2032, 4080};

static bool is_of_malloc(const struct mapping *mapping) {
  return mapping->is_anonymous && mapping->is_private && mapping->is_readable &&
         mapping->is_writable && (*mapping->path == 0 || strncmp(mapping->path, "[anon:", 6) == 0);
}

/* Since 2.43 the chunk's size leaves out the last 16 bytes, and bit 0 of prev_size marks huge
 * pages. */
static bool take(const struct target *target, const struct mapping *mapping, uint64_t chunk,
                 const uint8_t *header, struct mmapped *found) {
  uint64_t lead = word_at(header) & ~UINT64_C(1), size = word_at(header + 8);
  if ((size & FLAGS) != IS_MMAPPED) return false;
  size &= ~(uint64_t)FLAGS;
  uint64_t place = chunk % PAGE;
  if (lead % PAGE != place || (lead >= PAGE && place != PAGE - 16)) return false;
  if (lead > chunk - mapping->begin || size < 2 * HEADER_BYTES || size > mapping->end - chunk)
    return false;
  bool is_old = (lead + size) % target->page_bytes == 0;
  if (!is_old && (lead + size + 16) % target->page_bytes != 0) return false;
  found->chunk = chunk;
  found->begin = chunk - lead;
  found->bytes = lead + size + (is_old ? 0 : 16);
  found->usable = is_old ? size - 16 : size - 8;
  return found->begin + found->bytes <= mapping->end;
}

static void add(struct heap *heap, struct mmapped *found) {
  if (heap->mmapped_count % 1024 == 0)
    heap->mmapped = allocated(heap->mmapped, (heap->mmapped_count + 1024) * sizeof *heap->mmapped);
  found->resident = pages_resident(heap->target, found->begin, found->begin + found->bytes);
  heap->mmapped[heap->mmapped_count++] = *found;
}

/* Where the main arena's chunks that begin here end: at a fence or with the top; 0: none do. */
static uint64_t end_of_part(const struct heap *heap, const struct region *part) {
  uint64_t chunk = part->begin, header[2], before = 0, top = heap->arenas[part->arena].top;
  while (chunk + HEADER_BYTES <= part->end && memory_peek(heap->target, chunk, header, 16)) {
    uint64_t bytes = header[1] & ~(uint64_t)FLAGS;
    if (!(header[1] & WAS_IN_USE) && header[0] != before) return 0;
    if (bytes == HEADER_BYTES && before) return chunk + 2 * HEADER_BYTES;
    if (bytes < MINIMUM_BYTES || bytes % CHUNK_ALIGNMENT || bytes > part->end - chunk) return 0;
    if (header[1] & (IS_MMAPPED | NOT_MAIN)) return 0;
    chunk += bytes;
    before = bytes;
    if (chunk - bytes == top) return chunk;
  }
  return 0;
}

static bool is_all_found(const struct heap *heap) {
  bool is_contiguous = heap->arena_count && heap->arenas[0].is_contiguous;
  return heap->parameters.address && is_contiguous && heap->mmapped_count >= heap->parameters.mmaps;
}

/* Takes the chunk that begins in this page; returns where to go on. */
static uint64_t visit_page(struct heap *heap, const struct mapping *mapping, uint64_t page,
                           const uint8_t *bytes) {
  struct mmapped found;
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; ++i) {
    if (!take(heap->target, mapping, page + PLACES[i], bytes + PLACES[i], &found)) continue;
    add(heap, &found);
    return found.begin + found.bytes;
  }
  uint64_t size = word_at(bytes + 8);
  bool is_first = (size & FLAGS) == WAS_IN_USE && size > MINIMUM_BYTES;
  if (heap->arenas[0].is_main && !heap->arenas[0].is_contiguous && is_first) {
    struct region part = {page, page, mapping->end, mapping->end, 0, 0, 0};
    uint64_t end = end_of_part(heap, &part);
    if (end == 0) return page + PAGE;
    part.end = end;
    part.mapped_end = end;
    region_add(heap, &part);
    return round_up(end, PAGE);
  }
  return page + PAGE;
}

static void search(struct heap *heap, const struct mapping *mapping, uint8_t *bytes,
                   uint8_t *states) {
  uint64_t at = mapping->begin;
  while (at < mapping->end && !is_all_found(heap)) {
    const struct region *region = region_of(heap, at);
    if (region) {
      at = round_up(region->mapped_end, PAGE);
      continue;
    }
    at = pages_next(heap->target, at, mapping->end);
    uint64_t begin = at, unit = heap->target->page_bytes;
    size_t size = mapping->end - at < PIECE_BYTES ? (size_t)(mapping->end - at) : PIECE_BYTES;
    memory_read_touched(heap->target, begin, bytes, size, states);
    if (size < PAGE) return;
    while (at + PAGE <= begin + size && at >= begin && !region_of(heap, at)) {
      bool is_absent = states[at / unit - begin / unit] == PAGE_ABSENT;
      at = is_absent ? at + PAGE : visit_page(heap, mapping, at, bytes + (at - begin));
    }
  }
}

void mmapped_find(struct heap *heap) {
  uint8_t *bytes = allocated_pages(PIECE_BYTES);
  uint8_t *states = allocated(NULL, PIECE_BYTES / PAGE + 2);
  memory_forget();
  for (size_t i = 0; i < heap->target->mapping_count && !is_all_found(heap); ++i) {
    const struct mapping mapping = heap->target->mappings[i];
    if (is_of_malloc(&mapping)) search(heap, &mapping, bytes, states);
  }
  free(states);
  free(bytes);
}
