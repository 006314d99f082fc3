#include "chunks.h"

#include <stdlib.h>
#include <string.h>

void walk_init(struct walk *walk, struct heap *heap, struct findings *findings) {
  memset(walk, 0, sizeof *walk);
  walk->heap = heap;
  walk->findings = findings;
  struct chain *chain = &walk->chain;
  chain->window.bytes = allocated(NULL, WINDOW_MAX);
  chain->window.states = allocated(NULL, WINDOW_MAX / heap->target->page_bytes + 2);
  chain->chunks = allocated(NULL, (WINDOW_MAX / MINIMUM_BYTES + 1) * sizeof *chain->chunks);
}

bool is_in_window(const struct window *window, uint64_t begin, uint64_t end) {
  return begin >= window->begin && end <= window->end;
}

static void window_read(struct walk *walk, uint64_t at, size_t bytes) {
  struct window *window = &walk->chain.window;
  uint64_t end = walk->region->mapped_end;
  window->begin = at;
  window->end = at >= end ? at : end - at < bytes ? end : at + bytes;
  if (window->end > at)
    memory_read_touched(walk->heap->target, at, window->bytes, (size_t)(window->end - at),
                        window->states);
}

/* The header at an address; from the window, or from the target. */
static void header_read(const struct walk *walk, uint64_t at, uint64_t header[2]) {
  const struct window *window = &walk->chain.window;
  if (is_in_window(window, at, at + HEADER_BYTES)) {
    memcpy(header, window->bytes + (at - window->begin), HEADER_BYTES);
  } else {
    memory_read(walk->heap->target, at, header, HEADER_BYTES);
  }
}

/* WINDOW_END: it is a chunk like any other. */
static enum stop judge(const struct walk *walk, uint64_t at, const uint64_t header[2]) {
  const struct region *region = walk->region;
  uint64_t bytes = header[1] & ~(uint64_t)FLAGS;
  if (at == walk->top) return AT_TOP;
  if (bytes == HEADER_BYTES && !(header[1] & IS_MMAPPED)) {
    uint64_t second[2];
    if (region->heap_info) return at + 64 >= region->end ? AT_FENCE : BAD_SIZE;
    header_read(walk, at + HEADER_BYTES, second);
    return second[1] == (HEADER_BYTES | WAS_IN_USE) ? AT_FENCE : BAD_SIZE;
  }
  if (region->heap_info && bytes == 0 && at + HEADER_BYTES == region->end) return AT_FENCE;
  bool is_aligned = bytes % CHUNK_ALIGNMENT == 0 && !(header[1] & IS_MMAPPED);
  if (at >= region->end || bytes < MINIMUM_BYTES || !is_aligned || bytes > region->end - at)
    return BAD_SIZE;
  return !region->heap_info && (header[1] & NOT_MAIN) ? BAD_SIZE : WINDOW_END;
}

static void stop_at(struct chain *chain, uint64_t at, const uint64_t header[2], enum stop why) {
  chain->stop = why;
  chain->next = at;
  memcpy(chain->header, header, HEADER_BYTES);
}

void chain_read(struct walk *walk, uint64_t at, size_t bytes) {
  struct chain *chain = &walk->chain;
  uint64_t header[2], next[2];
  window_read(walk, at, bytes);
  chain->count = 0;
  chain->before = chain->before_bytes = 0;
  header_read(walk, at, header);
  enum stop kind = judge(walk, at, header);
  while (kind == WINDOW_END) {
    uint64_t size = header[1] & ~(uint64_t)FLAGS, follower = at + size;
    if (follower == walk->region->end) { /* the end of all chunks is that of the top */
      kind = AT_TOP;
      break;
    }
    bool is_inside = is_in_window(&chain->window, follower, follower + 2 * HEADER_BYTES);
    if (!is_inside && chain->count > 0) break;
    header_read(walk, follower, next);
    kind = judge(walk, follower, next);
    bool is_free = !(next[1] & WAS_IN_USE);
    if (kind != BAD_SIZE && is_free && next[0] != size && !is_broken(walk->findings, follower))
      kind = BAD_PREV_SIZE;
    if (kind == BAD_SIZE || kind == BAD_PREV_SIZE) {
      chain->before = at;
      chain->before_bytes = size;
    } else {
      chain->chunks[chain->count++] = (struct chunk){at, size, is_free};
    }
    at = follower;
    memcpy(header, next, HEADER_BYTES);
    if (!is_inside) break; /* the only one: it is larger than the window */
  }
  stop_at(chain, at, header, kind);
}

uint64_t chain_follow(struct walk *walk, uint64_t anchor, uint64_t wanted, uint64_t past) {
  uint64_t at = anchor, found = at >= wanted ? at : 0;
  struct chain *chain = &walk->chain;
  do {
    chain_read(walk, at, WINDOW_MAX);
    for (size_t i = 0; i < chain->count && !found; ++i) {
      if (chain->chunks[i].address >= wanted) {
        found = chain->chunks[i].address;
      } else {
        chain->covering = chain->chunks[i];
      }
    }
    at = chain->next;
    bool is_good = chain->stop != BAD_SIZE && chain->stop != BAD_PREV_SIZE;
    if (!found && at >= wanted && is_good) found = at;
  } while (chain->stop == WINDOW_END && at <= past);
  return found;
}

/* A quick check, which most other bytes fail. */
static bool may_be_chunk(const struct walk *walk, const uint8_t *bytes, uint64_t at) {
  uint64_t size = word_at(bytes + 8), rest = walk->region->end - at;
  return size >= MINIMUM_BYTES && size <= (rest | FLAGS) && (size & 8) == 0 &&
         (size & IS_MMAPPED) == 0;
}

uint64_t chain_find(struct walk *walk, uint64_t from) {
  const struct region *region = walk->region;
  uint64_t at = round_up(from, CHUNK_ALIGNMENT);
  memory_forget();
  while (at + HEADER_BYTES <= region->end) {
    window_read(walk, at, WINDOW_MAX);
    const struct window *window = &walk->chain.window;
    if (window->end < at + HEADER_BYTES) return 0;
    for (; at + HEADER_BYTES <= window->end && at + HEADER_BYTES <= region->end;
         at += CHUNK_ALIGNMENT) {
      if (at == walk->top) return at;
      if (may_be_chunk(walk, window->bytes + (at - window->begin), at) &&
          is_run(walk->heap, region, at))
        return at;
    }
  }
  return 0;
}
