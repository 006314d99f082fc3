#include "walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANCHORS = 32, QUICK_TRIES = 3 };

/* One walk of a region. */
struct way {
  struct walk *walk;
  struct wanted wanted;
  uint64_t at, origin; /* the chain began there */
  size_t window_bytes;
  unsigned tries;
  bool is_unproven;          /* since the chain was taken up again at a guess */
  uint64_t anchors[ANCHORS]; /* where the last windows began: the chain led through there */
  size_t anchor_count;
  struct chunk last[2]; /* the chunks before `at`, the nearer one first */
};

static void collect(struct way *way) {
  const struct chain *chain = &way->walk->chain;
  for (size_t i = 0; i < chain->count; ++i) {
    const struct chunk *chunk = &chain->chunks[i];
    uint64_t end = chunk->address + chunk->bytes + HEADER_BYTES;
    if (chunk->is_free) continue;
    const uint8_t *bytes = is_in_window(&chain->window, chunk->address, end)
                               ? chain->window.bytes + (chunk->address - chain->window.begin)
                               : NULL;
    if (bytes && way->wanted.marks->notes_links)
      caches_note(way->walk->heap, way->wanted.marks, chunk, bytes);
    if (!is_candidate(chunk->bytes)) continue;
    if (bytes && !is_candidate_content(chunk->bytes, bytes)) continue;
    candidates_add(way->wanted.candidates, chunk->address);
  }
}

/* Findings of lists know no neighbours. */
static void name_neighbours(struct way *way) {
  const struct chain *chain = &way->walk->chain;
  for (size_t i = 0; i < way->wanted.suspicions->count; ++i) {
    struct finding *finding = &way->wanted.suspicions->list[i];
    size_t low = 1, high = chain->count;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (chain->chunks[middle].address < finding->chunk) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low < chain->count && chain->chunks[low].address == finding->chunk)
      finding_before(finding, &chain->chunks[low - 1]);
  }
}

/* Takes the chunks of the chain as true. */
static void commit(struct way *way) {
  const struct chain *chain = &way->walk->chain;
  if (way->wanted.candidates) collect(way);
  if (way->wanted.accounts) account_chain(way->wanted.accounts, way->walk);
  if (way->wanted.links)
    (way->wanted.accounts ? links_check : links_note)(way->wanted.links, way->walk);
  if (way->wanted.suspicions) name_neighbours(way);
  if (chain->count > 0) {
    way->last[1] = chain->count > 1 ? chain->chunks[chain->count - 2] : way->last[0];
    way->last[0] = chain->chunks[chain->count - 1];
    size_t newest = (way->anchor_count + ANCHORS - 1) % ANCHORS;
    bool is_far = !way->anchor_count || way->at - way->anchors[newest] >= WINDOW_MAX;
    if (is_far && !way->is_unproven) way->anchors[way->anchor_count++ % ANCHORS] = way->at;
  }
  bool is_giant = chain->count == 1 && chain->next > chain->window.end;
  way->window_bytes = is_giant                         ? WINDOW_AFTER_GIANT
                      : way->window_bytes < WINDOW_MAX ? way->window_bytes * 2
                                                       : WINDOW_MAX;
  way->at = chain->next;
  way->tries = 0;
}

static void skip_unknown(struct way *way, uint64_t to) {
  if (way->wanted.accounts) account_unknown(way->wanted.accounts, way->walk, way->at, to);
  way->at = to;
  way->tries = 0;
}

static void skip_headers(struct way *way, uint64_t to) {
  if (way->wanted.accounts) account_headers(way->wanted.accounts, way->walk, way->at, to);
  way->at = to;
}

/* Goes on at the next run of chunks, or at the region's end. */
static void resynchronise(struct way *way, uint64_t from) {
  uint64_t found = chain_find(way->walk, from);
  skip_unknown(way, found ? found : way->walk->region->end);
  way->is_unproven = true;
}

/* ---- damage ---- */

enum outcome { GONE, LASTING, UNSTEADY };

struct stop_seen {
  enum stop stop;
  uint64_t at, header[2];
};

static struct stop_seen seen_of(const struct chain *chain) {
  struct stop_seen seen = {chain->stop, chain->next, {chain->header[0], chain->header[1]}};
  return seen;
}

static bool is_bad(enum stop stop) { return stop == BAD_SIZE || stop == BAD_PREV_SIZE; }

/* A lock that is free at one moment tells that the arena was not in the middle of a change. */
static bool is_quiet(const struct walk *walk) {
  uint32_t mutex = 1;
  uint64_t arena = walk->heap->arenas[walk->region->arena].address;
  memory_read(walk->heap->target, arena, &mutex, sizeof mutex);
  return mutex == 0;
}

/* Follows the chain from an anchor that many windows before, or from its origin.  GONE: it leads
 * past the break, and `at` has moved to one of its chunks. */
static enum outcome retrace(struct way *way, size_t windows, const struct stop_seen *seen) {
  struct walk *walk = way->walk;
  uint64_t anchor = way->origin, wanted = way->at;
  if (windows <= ANCHORS && windows <= way->anchor_count)
    anchor = way->anchors[(way->anchor_count - windows) % ANCHORS];
  walk->top = region_refresh(walk->heap, walk->region);
  uint64_t found = chain_follow(walk, anchor, wanted, seen->at);
  struct stop_seen now = seen_of(&walk->chain);
  bool is_same = now.stop == seen->stop && now.at == seen->at && now.header[0] == seen->header[0] &&
                 now.header[1] == seen->header[1];
  if (is_same) return LASTING;
  if (!found || (is_bad(now.stop) && now.at <= seen->at)) return UNSTEADY;
  struct chain *chain = &walk->chain;
  if (found > wanted) { /* within a larger chunk by now */
    chain->chunks[0] = (struct chunk){wanted, found - wanted, chain->covering.is_free};
    chain->count = 1;
    chain->next = found;
    chain->window.end = chain->window.begin;
    way->is_unproven = true; /* `at` is not an anchor */
    commit(way);
  }
  way->is_unproven = false;
  way->tries = 0;
  return GONE;
}

/* The break is damage if it stays the same on the way from an anchor far before. */
static enum outcome examine(struct way *way, const struct stop_seen *seen) {
  struct walk *walk = way->walk;
  if (!walk->heap->target->pid) return LASTING;
  unsigned quiet = 0, changed = 0;
  for (unsigned round = 0; round < 4 * ROUNDS && (round < ROUNDS || !quiet); ++round) {
    sleep_ms(ROUND_MS);
    bool was_quiet = is_quiet(walk);
    enum outcome outcome = retrace(way, ANCHORS, seen);
    if (outcome == GONE) return GONE;
    changed += outcome != LASTING;
    quiet += was_quiet && outcome == LASTING && is_quiet(walk);
    if (changed > 2) break;
  }
  if (changed > 0 || quiet == 0) return UNSTEADY;
  return retrace(way, ANCHORS + 1, seen); /* an anchor may lie in a larger chunk by now */
}

enum blamed { THE_BROKEN, THE_BEFORE, EITHER };

/* Which of two chunks is damaged: the one where the chain breaks, or the one before, whose size led
 * there?  `next` is where a chain of chunks begins again. */
static enum blamed blamed_of(const struct way *way, uint64_t before, uint64_t broken,
                             uint64_t next) {
  uint64_t here[2], there[2], follower[2];
  const struct heap *heap = way->walk->heap;
  if (!before || !next || next >= way->walk->region->end) return THE_BROKEN;
  if (next < broken) return THE_BEFORE;
  memory_read(heap->target, before, here, sizeof here);
  memory_read(heap->target, broken, there, sizeof there);
  memory_read(heap->target, next, follower, sizeof follower);
  if (!(follower[1] & WAS_IN_USE)) return follower[0] == next - before ? THE_BEFORE : THE_BROKEN;
  /* One byte too many led too short; often it repeats the last one of the block before. */
  bool is_one_byte_there = there[1] >> 8 == (next - broken) >> 8;
  if (is_one_byte_there || here[1] >> 8 != (next - before) >> 8) return THE_BROKEN;
  return here[0] >> 56 == (here[1] & 0xff) ? THE_BEFORE : EITHER;
}

static const char *either_detail(const struct chunk *earlier) {
  enum { DETAIL_BYTES = 160 };
  char *text = allocated(NULL, DETAIL_BYTES);
  snprintf(
      text, DETAIL_BYTES,
      "its size does not lead to the next chunk, unless one byte beyond the block at %#llx has "
      "made the chunk before it smaller",
      (unsigned long long)earlier->address + HEADER_BYTES);
  return text;
}

/* Returns the place where the chain goes on; 0: nowhere. */
static uint64_t blame(struct way *way, struct finding *finding) {
  struct walk *walk = way->walk;
  const struct chain *chain = &walk->chain;
  struct chunk before = {chain->before, chain->before_bytes, false}, earlier = way->last[0];
  if (!before.address) {
    before = way->last[0];
    earlier = way->last[1];
  }
  bool is_size = chain->stop == BAD_SIZE;
  uint64_t broken = chain->next, next = broken;
  if (is_size)
    next = chain_find(walk, before.address ? before.address + MINIMUM_BYTES : broken + 16);
  enum blamed blamed = is_size ? blamed_of(way, before.address, broken, next) : THE_BROKEN;
  bool is_before = blamed == THE_BEFORE;
  finding->what = is_size ? DAMAGED_SIZE : DAMAGED_PREV_SIZE;
  finding->arena = walk->heap->arenas[walk->region->arena].address;
  finding->word = chain->header[1];
  finding->chunk = is_before ? before.address : broken;
  finding_before(finding, is_before ? &earlier : &before);
  finding->detail = !is_size ? "it says that the chunk before it is free and has another size"
                    : blamed == EITHER && earlier.address
                        ? either_detail(&earlier)
                        : "its size does not lead to the next chunk";
  return next;
}

/* Goes on after a break, at the next run of chunks. */
static void pass_break(struct way *way) {
  struct walk *walk = way->walk;
  chain_read(walk, way->at, WINDOW_MAX);
  enum stop stop = walk->chain.stop;
  uint64_t broken = walk->chain.next;
  commit(way);
  if (!is_bad(stop)) return;
  resynchronise(way, stop == BAD_SIZE ? broken + CHUNK_ALIGNMENT : broken);
}

static void report(struct way *way) {
  struct walk *walk = way->walk;
  struct chain *chain = &walk->chain;
  struct finding finding = {0};
  chain_read(walk, way->at, WINDOW_MAX);
  if (!is_bad(chain->stop)) return; /* it is gone after all */
  uint64_t broken = chain->next, before = chain->before;
  bool goes_on = chain->stop == BAD_PREV_SIZE;
  commit(way);
  if (before) way->at = before;
  uint64_t next = blame(way, &finding);
  findings_add(walk->findings, &finding);
  if (before && finding.chunk == broken) { /* the one before is whole */
    chain->chunks[0] = (struct chunk){before, chain->before_bytes, false};
    chain->count = 1;
    chain->next = broken;
    commit(way);
  }
  if (goes_on) return;
  skip_unknown(way, next ? next : walk->region->end);
  way->anchor_count = 0;
  way->origin = way->at; /* no chain leads there from before */
}

/* First it is read again, in smaller and smaller windows; then the way there is. */
static void meet_damage(struct way *way) {
  struct stop_seen seen = seen_of(&way->walk->chain);
  unsigned tries = way->tries++;
  way->window_bytes = tries ? WINDOW_MIN : 8 * WINDOW_MIN;
  if (tries < QUICK_TRIES) return;
  enum outcome outcome = UNSTEADY;
  if (tries < 2 * QUICK_TRIES && way->walk->heap->target->pid)
    outcome = retrace(way, tries - QUICK_TRIES ? ANCHORS : 1, &seen);
  if (outcome == GONE || tries + 1 < 2 * QUICK_TRIES) return;
  outcome = way->wanted.candidates || tries > 3 * QUICK_TRIES ? UNSTEADY : examine(way, &seen);
  if (outcome == LASTING) report(way);
  if (outcome == UNSTEADY) pass_break(way);
}

/* After a fence of the main arena come addresses that another user of sbrk took. */
static void meet_fence(struct way *way) {
  struct walk *walk = way->walk;
  struct region *region = walk->region;
  commit(way);
  if (region->heap_info) {
    skip_headers(way, region->end);
    return;
  }
  uint64_t foreign = way->at + 2 * HEADER_BYTES;
  skip_headers(way, foreign < region->end ? foreign : region->end);
  uint64_t next = chain_find(walk, way->at), to = next ? next : region->end;
  if (way->wanted.accounts) {
    walk->heap->arenas[region->arena].account.foreign_bytes += to - way->at;
    way->wanted.accounts->run_begin = 0;
  }
  way->at = to;
}

/* The top ends where its heap does. */
static bool is_top_damaged(const struct walk *walk) {
  const struct region *region = walk->region;
  const struct target *target = walk->heap->target;
  uint64_t header[2], heap_bytes = 0;
  memory_read(target, walk->top, header, sizeof header);
  uint64_t size = header[1] & ~(uint64_t)FLAGS, end = walk->top + size;
  if (!(header[1] & WAS_IN_USE) || end < walk->top || end > region->mapped_end) return true;
  if (!region->heap_info) return end % target->page_bytes != 0;
  memory_read(target, region->heap_info + 16, &heap_bytes, sizeof heap_bytes);
  return end != region->heap_info + heap_bytes;
}

static void check_top(struct way *way) {
  struct walk *walk = way->walk;
  uint64_t top = walk->top;
  bool is_damaged = is_top_damaged(walk), was_quiet = walk->heap->target->pid == 0;
  for (unsigned round = 0; round < ROUNDS && is_damaged && walk->heap->target->pid; ++round) {
    sleep_ms(ROUND_MS);
    walk->top = region_refresh(walk->heap, walk->region);
    is_damaged = walk->top == top && is_top_damaged(walk);
    was_quiet |= is_quiet(walk) && is_top_damaged(walk) && is_quiet(walk);
  }
  if (!is_damaged || !was_quiet) return;
  struct finding finding = {.what = DAMAGED_SIZE, .chunk = top};
  finding.arena = walk->heap->arenas[walk->region->arena].address;
  finding_before(&finding, &way->last[0]);
  finding.detail = "it is the last one, and its size does not lead to the heap's end";
  findings_add(walk->findings, &finding);
}

static void walk_region(struct way *way) {
  struct walk *walk = way->walk;
  struct region *region = walk->region;
  walk->top = region_refresh(walk->heap, region);
  way->at = way->origin = region->begin;
  way->window_bytes = WINDOW_MAX;
  way->anchor_count = 0;
  way->tries = 0;
  way->is_unproven = false;
  memset(way->last, 0, sizeof way->last);
  if (way->wanted.accounts)
    account_headers(way->wanted.accounts, walk, region->mapped_begin, region->begin);
  bool is_at_top = false;
  while (way->at < region->end && !(is_at_top = is_at_top || way->at >= walk->top)) {
    chain_read(walk, way->at, way->window_bytes);
    enum stop stop = walk->chain.stop;
    if (is_bad(stop)) {
      meet_damage(way);
    } else if (stop == AT_FENCE) {
      meet_fence(way);
    } else {
      commit(way);
      is_at_top = stop == AT_TOP;
    }
    walk->top = region_refresh(walk->heap, region);
  }
  region->walked_to = way->at < region->end ? way->at : region->end;
  if (!way->wanted.accounts) return;
  if (is_at_top && way->at == walk->top) check_top(way);
  if (is_at_top && way->at < region->end) account_top(way->wanted.accounts, walk, way->at);
  way->wanted.accounts->run_begin = 0;
  if (region->mapped_end > region->end)
    walk->heap->arenas[region->arena].account.resident[UNUSED] +=
        pages_resident(walk->heap->target, region->end, region->mapped_end);
}

void walk_all(struct walk *walk, const struct wanted *wanted) {
  struct way way = {.walk = walk, .wanted = *wanted};
  for (size_t i = 0; i < walk->heap->region_count; ++i) {
    walk->region = &walk->heap->regions[i];
    walk_region(&way);
  }
}
