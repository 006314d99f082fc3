#include "links.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 512, SUSPECTS_MAX = 4096, FD = 16, BK = 24 };
/* Each link that leads out of the window costs a look at the target. */
enum { LOOKS_MAX = 3 << 20, SUM_BITS = 20 };

struct free_chunk {
  uint64_t address, fd, bk, arena;
  struct chunk before;
  size_t region;
};

struct links {
  struct heap *heap;
  struct findings *findings;
  struct look {
    struct free_chunk chunk;
    uint64_t at;
  } queue[QUEUE_MAX];
  size_t queued, looks, suspect_count;
  struct free_chunk suspects[SUSPECTS_MAX];
  uint32_t sums[1 << SUM_BITS]; /* of links by their hash: forward ones less backward ones */
};

struct links *links_new(struct heap *heap, struct findings *findings) {
  struct links *links = allocated(NULL, sizeof *links);
  memset(links, 0, sizeof *links);
  links->heap = heap;
  links->findings = findings;
  return links;
}

static void suspect(struct links *links, const struct free_chunk *chunk) {
  size_t count = links->suspect_count;
  if (count == SUSPECTS_MAX || (count && links->suspects[count - 1].address == chunk->address))
    return;
  links->suspects[links->suspect_count++] = *chunk;
}

static void flush(struct links *links) {
  uint64_t addresses[QUEUE_MAX], words[QUEUE_MAX];
  for (size_t i = 0; i < links->queued; ++i) addresses[i] = links->queue[i].at;
  memory_gather(links->heap->target, addresses, links->queued, words);
  for (size_t i = 0; i < links->queued; ++i)
    if (words[i] != links->queue[i].chunk.address) suspect(links, &links->queue[i].chunk);
  links->queued = 0;
}

/* A free chunk of the same arena, or a bin. */
static bool is_plausible(const struct links *links, const struct free_chunk *chunk, uint64_t link) {
  const struct heap *heap = links->heap;
  uint64_t bins = chunk->arena + heap->layout.bins_offset;
  if (link >= bins - FD && link < bins - FD + BINS_BYTES) return (link - (bins - FD)) % 16 == 0;
  const struct region *region = region_of(heap, link);
  return link % CHUNK_ALIGNMENT == 0 && region &&
         heap->arenas[region->arena].address == chunk->arena;
}

static void look(struct links *links, const struct window *window, const struct free_chunk *chunk,
                 uint64_t at) {
  if (is_in_window(window, at, at + 8)) {
    if (word_at(window->bytes + (at - window->begin)) != chunk->address) suspect(links, chunk);
    return;
  }
  if (links->looks == LOOKS_MAX) return;
  ++links->looks;
  links->queue[links->queued++] = (struct look){*chunk, at};
  if (links->queued == QUEUE_MAX) flush(links);
}

/* The links of a chunk in the window, if it is free. */
static bool read_links(const struct window *window, const struct chunk *read,
                       struct free_chunk *chunk) {
  uint64_t at = read->address;
  if (!read->is_free || !is_in_window(window, at, at + MINIMUM_BYTES)) return false;
  memset(chunk, 0, sizeof *chunk);
  chunk->address = at;
  chunk->fd = word_at(window->bytes + (at - window->begin) + FD);
  chunk->bk = word_at(window->bytes + (at - window->begin) + BK);
  return true;
}

/* A link's place among the sums, and what it adds there. */
static uint32_t *sum_of(struct links *links, uint64_t from, uint64_t to, uint32_t *term) {
  uint64_t hash = (from * UINT64_C(0x9e3779b97f4a7c15) ^ to) * UINT64_C(0xd6e8feb86659fd93);
  *term = (uint32_t)(hash >> 12);
  return &links->sums[hash >> (64 - SUM_BITS)];
}

void links_note(struct links *links, struct walk *walk) {
  const struct chain *chain = &walk->chain;
  struct free_chunk chunk;
  uint32_t term;
  for (size_t i = 0; i < chain->count; ++i) {
    if (!read_links(&chain->window, &chain->chunks[i], &chunk)) continue;
    *sum_of(links, chunk.address, chunk.fd, &term) += term;
    *sum_of(links, chunk.bk, chunk.address, &term) -= term;
  }
}

static bool is_agreed(struct links *links, uint64_t from, uint64_t to) {
  uint32_t term;
  return *sum_of(links, from, to, &term) == 0;
}

void links_check(struct links *links, struct walk *walk) {
  const struct chain *chain = &walk->chain;
  const struct window *window = &chain->window;
  struct free_chunk chunk;
  for (size_t i = 0; i < chain->count; ++i) {
    if (!read_links(window, &chain->chunks[i], &chunk)) continue;
    chunk.arena = links->heap->arenas[walk->region->arena].address;
    chunk.region = (size_t)(walk->region - links->heap->regions);
    if (i > 0) chunk.before = chain->chunks[i - 1];
    if (!is_plausible(links, &chunk, chunk.fd) || !is_plausible(links, &chunk, chunk.bk)) {
      suspect(links, &chunk);
    } else {
      if (!is_agreed(links, chunk.address, chunk.fd)) look(links, window, &chunk, chunk.fd + BK);
      if (!is_agreed(links, chunk.bk, chunk.address)) look(links, window, &chunk, chunk.bk + FD);
    }
  }
}

/* Still free, with the same links, which still do not point back? */
static bool is_damaged(const struct links *links, const struct free_chunk *chunk) {
  const struct target *target = links->heap->target;
  uint64_t now[4], follower[2], back = 0, forth = 0;
  memory_read(target, chunk->address, now, sizeof now);
  uint64_t size = now[1] & ~(uint64_t)FLAGS;
  memory_read(target, chunk->address + size, follower, sizeof follower);
  if (now[2] != chunk->fd || now[3] != chunk->bk) return false;
  if ((follower[1] & WAS_IN_USE) || follower[0] != size) return false;
  memory_read(target, chunk->fd + BK, &back, sizeof back);
  memory_read(target, chunk->bk + FD, &forth, sizeof forth);
  return back != chunk->address || forth != chunk->address;
}

static bool is_quiet(const struct links *links, uint64_t arena) {
  uint32_t mutex = 1;
  memory_read(links->heap->target, arena, &mutex, sizeof mutex);
  return mutex == 0;
}

/* Its own links are wrong, not only those of a neighbour that is found damaged. */
static bool is_to_blame(const struct links *links, const struct free_chunk *chunk) {
  if (!is_plausible(links, chunk, chunk->fd) || !is_plausible(links, chunk, chunk->bk)) return true;
  for (size_t i = 0; i < links->suspect_count; ++i) {
    const struct free_chunk *other = &links->suspects[i];
    if (other->address != chunk->fd && other->address != chunk->bk) continue;
    if (!is_plausible(links, other, other->fd) || !is_plausible(links, other, other->bk))
      return false;
  }
  return true;
}

static bool is_still_chunk(struct links *links, struct walk *walk, const struct free_chunk *chunk) {
  if (!links->heap->target->pid) return true;
  walk->region = &links->heap->regions[chunk->region];
  for (size_t i = 0; i < links->findings->count; ++i)
    if (region_of(links->heap, links->findings->list[i].chunk) == walk->region) return true;
  walk->top = region_refresh(links->heap, walk->region);
  uint64_t begin = walk->region->begin;
  return chain_follow(walk, begin, chunk->address, chunk->address) == chunk->address;
}

static void drop_healthy(struct links *links) {
  size_t kept = 0;
  for (size_t i = 0; i < links->suspect_count; ++i)
    if (is_damaged(links, &links->suspects[i])) links->suspects[kept++] = links->suspects[i];
  links->suspect_count = kept;
}

void links_confirm(struct links *links, struct walk *walk) {
  flush(links);
  bool is_live = links->heap->target->pid != 0;
  for (unsigned round = 0; round < ROUNDS && links->suspect_count; ++round) {
    if (is_live) sleep_ms(ROUND_MS);
    drop_healthy(links);
  }
  for (size_t i = 0; i < links->suspect_count; ++i) {
    const struct free_chunk *chunk = &links->suspects[i];
    if (!is_to_blame(links, chunk) || !is_still_chunk(links, walk, chunk)) continue;
    bool was_quiet = !is_live;
    for (unsigned round = 0; round < 20 * ROUNDS && !was_quiet; ++round) {
      was_quiet = is_quiet(links, chunk->arena) && is_damaged(links, chunk) &&
                  is_quiet(links, chunk->arena);
      if (!was_quiet) sleep_ms(1);
    }
    if (!was_quiet || !is_damaged(links, chunk)) continue;
    struct finding found = {.what = DAMAGED_LINKS, .arena = chunk->arena, .chunk = chunk->address};
    found.word = chunk->fd;
    finding_before(&found, &chunk->before);
    found.detail = "the chunk is free, and its links do not lead to chunks that point back";
    findings_add(links->findings, &found);
  }
}
