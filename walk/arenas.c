/* Where the arenas are: by the shape of main_arena, without symbols.
 *
 * An empty bin points to itself; a used one to chunks.  127 pairs like these, a plausible top
 * before them, and a chain of arenas that leads back give both the place and the layout. */
#include <stdlib.h>
#include <string.h>

#include "heap.h"

enum { PIECE_BYTES = 1 << 20, ARENAS_MAX = 1 << 16, PAIRS = 127, THREADS_MAX = 1 << 22 };
enum { TRIES = 10 };
enum { BEHIND_BINS = 16 }; /* the bitmap of bins */
static const uint64_t ADDRESSES_END = UINT64_C(1) << 57;

bool is_heap_like(const struct target *target, uint64_t address) {
  const struct mapping *mapping = mapping_of(target, address);
  return mapping && mapping->is_writable && mapping->is_readable;
}

static bool is_chunk_like(const struct target *target, uint64_t address) {
  return address % CHUNK_ALIGNMENT == 0 && address != 0 && is_heap_like(target, address);
}

/* The fields after the bins. */
struct tail {
  uint64_t next, next_free, threads, system_bytes, max_system_bytes;
};

static bool read_tail(const struct target *target, uint64_t bins, struct tail *tail) {
  uint64_t at = bins + BINS_BYTES + BEHIND_BINS;
  if (memory_read(target, at, tail, sizeof *tail) != sizeof *tail) return false;
  return tail->threads <= THREADS_MAX && tail->system_bytes <= tail->max_system_bytes &&
         tail->max_system_bytes < ADDRESSES_END;
}

static bool are_bins(const struct target *target, uint64_t bins) {
  uint64_t words[BINS_BYTES / 8 + 2]; /* top, last_remainder; bins */
  if (bins % 8 || memory_read(target, bins - 16, words, sizeof words) != sizeof words) return false;
  unsigned empty = 0;
  for (unsigned i = 0; i < PAIRS; ++i) {
    uint64_t self = bins + 16 * i - 16, fd = words[2 + 2 * i], bk = words[3 + 2 * i];
    if (fd == self && bk == self) {
      ++empty;
    } else if (!is_chunk_like(target, fd) || !is_chunk_like(target, bk)) {
      return false;
    }
  }
  bool has_top = words[0] == bins - 16 || is_chunk_like(target, words[0]);
  return has_top && empty > 0 && words[0] != bins - 32; /* one place before: its own empty bin */
}

/* The chain of arenas from main_arena, if `offset` leads from its head to its bins; 0: it is not
 * one. */
static size_t chain_of(const struct target *target, uint64_t bins, uint64_t offset,
                       uint64_t *arenas) {
  size_t count = 0;
  uint64_t main = bins - offset, arena = main;
  do {
    struct tail tail;
    if (count == ARENAS_MAX || !read_tail(target, arena + offset, &tail)) return 0;
    if (count > 0 && !are_bins(target, arena + offset)) return 0;
    arenas[count++] = arena;
    arena = tail.next;
    if (arena % 8 || !is_heap_like(target, arena)) return 0;
  } while (arena != main);
  return count;
}

static void add_arenas(struct heap *heap, const uint64_t *arenas, size_t count) {
  heap->arenas = allocated(heap->arenas, (heap->arena_count + count) * sizeof *heap->arenas);
  for (size_t i = 0; i < count; ++i) {
    struct arena *arena = &heap->arenas[heap->arena_count++];
    struct tail tail;
    uint64_t bins = arenas[i] + heap->layout.bins_offset;
    uint32_t head[2];
    memset(arena, 0, sizeof *arena);
    arena->address = arenas[i];
    arena->is_main = i == 0;
    memory_read(heap->target, arenas[i], head, sizeof head);
    arena->is_contiguous = !(head[1] & 2);
    memory_read(heap->target, bins - 16, &arena->top, 8);
    if (!read_tail(heap->target, bins, &tail)) continue;
    arena->system_bytes = tail.system_bytes;
    arena->max_system_bytes = tail.max_system_bytes;
    arena->threads = tail.threads;
  }
}

/* The first word of a thread's heap is its arena.  The ring of the main arena leads there, too. */
static bool is_of_thread(const struct heap *heap, uint64_t arena) {
  uint64_t owner = 0;
  memory_read(heap->target, round_down(arena, heap->target->page_bytes), &owner, sizeof owner);
  return owner == arena;
}

/* The bins of which this self-pointing pair is one. */
static bool find_around(struct heap *heap, uint64_t pair) {
  static uint64_t arenas[ARENAS_MAX];
  for (unsigned i = 0; i < PAIRS; ++i) {
    uint64_t bins = pair - 16 * i;
    if (!are_bins(heap->target, bins)) continue;
    for (uint64_t offset = 16; offset <= 256; offset += 8) {
      size_t count = chain_of(heap->target, bins, offset, arenas);
      if (count == 0 || (heap->arena_count && offset != heap->layout.bins_offset)) continue;
      if (is_of_thread(heap, arenas[0])) continue;
      heap->layout.bins_offset = offset;
      add_arenas(heap, arenas, count);
      return true;
    }
  }
  return false;
}

/* Returns the number of pairs that look like an empty bin. */
static size_t search(struct heap *heap, const struct mapping *mapping) {
  uint8_t *bytes = allocated(NULL, PIECE_BYTES + 16);
  uint8_t *states = allocated(NULL, PIECE_BYTES / heap->target->page_bytes + 2);
  size_t pairs = 0;
  uint64_t found = 0; /* the end of the last arena's bins */
  for (uint64_t at = mapping->begin; at < mapping->end; at += PIECE_BYTES) {
    size_t size = PIECE_BYTES + 16;
    if (mapping->end - at < size) size = (size_t)(mapping->end - at);
    if (mapping->is_anonymous) {
      memory_read_touched(heap->target, at, bytes, size, states);
    } else {
      memory_read(heap->target, at, bytes, size);
    }
    for (size_t i = 0; i + 16 <= size; i += 8) {
      uint64_t word = word_at(bytes + i);
      if (word != at + i - 16 || word_at(bytes + i + 8) != word || at + i < found) continue;
      ++pairs;
      if (find_around(heap, at + i)) found = at + i + BINS_BYTES;
    }
  }
  free(states);
  free(bytes);
  return pairs;
}

static void refuse_without_heap(const struct heap *heap, size_t pairs) {
  const char *word = heap->target->word, *version = heap->layout.version;
  if (heap->arena_count == 0 && pairs >= PAIRS / 2)
    refuse("%s: the layout of the heap of its glibc %s is not known", word, version);
  if (*version)
    refuse(
        "%s: the malloc of its glibc %s holds no heap: it was not called yet, or another malloc "
        "serves the program",
        word, version);
  refuse("%s: no heap of glibc's malloc found: the program has another C library, or none", word);
}

static size_t search_data(struct heap *heap, bool is_everywhere) {
  const struct target *target = heap->target;
  size_t pairs = 0;
  bool is_behind_file = false;
  for (size_t i = 0; i < target->mapping_count; ++i) {
    const struct mapping *mapping = &target->mappings[i];
    bool is_bss = is_behind_file && mapping->is_anonymous && *mapping->path == 0 &&
                  mapping->begin == target->mappings[i - 1].end;
    is_behind_file = !mapping->is_anonymous || is_bss;
    if (mapping->is_writable && mapping->is_readable && mapping->is_private &&
        (is_behind_file || is_everywhere))
      pairs += search(heap, mapping);
  }
  return pairs;
}

void heap_find(struct heap *heap, struct target *target) {
  memset(heap, 0, sizeof *heap);
  heap->target = target;
  size_t pairs = search_data(heap, false);
  for (unsigned i = 0; i < TRIES && pairs && heap->arena_count == 0 && target->pid; ++i) {
    sleep_ms(1); /* it was being changed, or grew beyond the mappings that were known */
    target_refresh(target);
    pairs = search_data(heap, false);
  }
  if (heap->arena_count == 0 && !target->pid) pairs = search_data(heap, true); /* files unknown */
  version_find(heap, heap->arena_count ? heap->arenas[0].address : 0);
  parameters_find(heap);
  uint64_t bytes = 0;
  for (size_t i = 0; i < heap->arena_count; ++i) bytes += heap->arenas[i].system_bytes;
  if (bytes == 0 && heap->parameters.mmaps == 0) refuse_without_heap(heap, pairs);
}
