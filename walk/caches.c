/* Thread caches need no TLS to be found: a chunk of the right size whose counts agree with its
 * lists of chunks of the right sizes is one. */
#include "caches.h"

#include <stdlib.h>
#include <string.h>

enum { BINS_MAX = 76, SMALL_BINS = 64, SMALL_MAX = 1040, ENTRIES_MAX = 1 << 16 };
enum { FAST_MAX = (FIRST_BINS + 1) * CHUNK_ALIGNMENT, LONG = 1 << 16 /* chunks in fastbins */ };
static const uint64_t FAST_ENTRIES_MAX = UINT64_C(1) << 40; /* marks end any cycle */

/* A release's tcache_perthread_struct: counts, or since 2.42 the slots that are left; then
 * heads. */
static const struct shape {
  uint64_t bytes;
  unsigned bins, count_bytes;
  bool has_slots;
} SHAPES[] = {{0x250, 64, 1, false}, {0x290, 64, 2, false}, {0x300, 76, 2, true}};

/* A cached chunk's head and first words. */
struct entry {
  uint64_t before, size, next, key;
};

struct list {
  enum damage what;
  enum mark mark;
  uint64_t bytes; /* of each chunk; 0: of large ones in `bin` */
  unsigned bin;
  uint64_t holder; /* the chunk, or arena, that has the head */
  uint64_t length_max;
  uint64_t arena;
};

static const struct shape *shape_of(uint64_t bytes) {
  for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; ++i)
    if (SHAPES[i].bytes == bytes) return &SHAPES[i];
  return NULL;
}

/* The last 8 of them may lie in the next chunk's header, as those of any block. */
static size_t content_bytes(const struct shape *shape) {
  return shape->bins * (shape->count_bytes + 8);
}

bool is_candidate(uint64_t bytes) { return shape_of(bytes) != NULL; }

bool is_candidate_content(uint64_t bytes, const uint8_t *chunk) {
  const struct shape *shape = shape_of(bytes);
  bool has_any = false;
  for (unsigned i = 0; i < shape->bins; ++i) {
    uint64_t head = word_at(chunk + HEADER_BYTES + shape->bins * shape->count_bytes + 8 * i);
    if (head % CHUNK_ALIGNMENT || head >> 57) return false;
    has_any |= head != 0;
  }
  return has_any;
}

void candidates_add(struct candidates *candidates, uint64_t chunk) {
  if (candidates->count == candidates->room) {
    candidates->room = candidates->room ? 2 * candidates->room : 1024;
    candidates->chunks =
        allocated(candidates->chunks, candidates->room * sizeof *candidates->chunks);
  }
  candidates->chunks[candidates->count++] = chunk;
}

static unsigned bits_of(uint64_t value) {
  unsigned bits = 0;
  for (; value; value >>= 1) ++bits;
  return bits;
}

static bool is_size_of(const struct list *list, uint64_t bytes) {
  if (list->bytes) return bytes == list->bytes;
  return bytes > SMALL_MAX && bits_of(bytes) == bits_of(SMALL_MAX) + list->bin - SMALL_BINS;
}

static struct list tcache_list(unsigned bin) {
  struct list list = {DAMAGED_TCACHE, IN_TCACHE, bin < SMALL_BINS ? (bin + 2) * 16 : 0, bin, 0,
                      ENTRIES_MAX,    0};
  return list;
}

/* A list's chunk as it is in the heap.  It may lie in a region that is younger than the known ones,
 * or, since 2.43, be an mmapped one. */
static bool read_entry(const struct heap *heap, const struct list *list, uint64_t chunk,
                       struct entry *entry) {
  if (chunk % CHUNK_ALIGNMENT) return false;
  if (!memory_peek(heap->target, chunk, entry, sizeof *entry)) return false;
  return is_size_of(list, entry->size & ~(uint64_t)FLAGS);
}

/* Links of fastbins point to chunks, those of thread caches to their content; since 2.32 they are
 * combined with their own place. */
static uint64_t next_of(const struct heap *heap, uint64_t chunk, uint64_t link) {
  return heap->layout.is_safe_linked ? link ^ (chunk + HEADER_BYTES) >> 12 : link;
}

static void suspect(struct findings *findings, const struct list *list, uint64_t chunk,
                    uint64_t word, const char *detail) {
  struct finding found = {.what = list->what, .arena = list->arena, .chunk = chunk};
  found.word = word;
  found.detail = detail;
  findings_add(findings, &found);
}

/* The chunk after this one in its list; false: it is not one of the list's.  Where the program
 * changes a fastbin, at its beginning, notes may be too old. */
static bool read_next(const struct heap *heap, const struct list *list, const struct marks *marks,
                      uint64_t length, uint64_t chunk, uint64_t *next) {
  struct entry entry;
  bool is_stable = list->mark == IN_FASTBIN && length > LONG;
  *next = is_stable ? link_noted(marks, chunk, list->bytes) : 0;
  if (*next) return true;
  if (!read_entry(heap, list, chunk, &entry)) return false;
  *next = next_of(heap, chunk, entry.next);
  return true;
}

static void walk_list(const struct heap *heap, const struct list *list, uint64_t head,
                      struct marks *marks, struct findings *findings) {
  uint64_t link = head, holder = list->holder, shift = list->mark == IN_TCACHE ? HEADER_BYTES : 0;
  for (uint64_t length = 0; link != 0; ++length) {
    uint64_t chunk = link - shift, next;
    if (!read_next(heap, list, marks, length, chunk, &next)) {
      suspect(findings, list, holder, link, "its link does not lead to a free chunk of its size");
      return;
    }
    if (mark_of(marks, chunk) != NOT_CACHED || length > list->length_max) {
      suspect(findings, list, chunk, chunk, "it is on free lists twice: freed twice");
      return;
    }
    mark_set(marks, chunk, list->mark);
    if (marks->is_full) return;
    link = next;
    holder = chunk;
  }
}

struct tcache {
  uint64_t chunk;
  const struct shape *shape;
  uint64_t heads[BINS_MAX], counts[BINS_MAX];
};

/* Reads a candidate; true if it has the form of a thread cache.  Its lists are not walked yet. */
static bool read_tcache(const struct heap *heap, uint64_t chunk, struct tcache *tcache) {
  uint8_t bytes[0x300];
  uint64_t header[2];
  memory_read(heap->target, chunk, header, sizeof header);
  const struct shape *shape = shape_of(header[1] & ~(uint64_t)FLAGS);
  if (shape == NULL) return false;
  memory_read(heap->target, chunk + HEADER_BYTES, bytes, content_bytes(shape));
  const uint8_t *heads = bytes + shape->bins * shape->count_bytes;
  unsigned used = 0, good = 0, disagree = 0;
  uint64_t limit = heap->parameters.address ? heap->parameters.tcache_count : 65535;
  tcache->chunk = chunk;
  tcache->shape = shape;
  for (unsigned i = 0; i < shape->bins; ++i) {
    uint64_t head = word_at(heads + 8 * i), count = bytes[i * shape->count_bytes];
    if (shape->count_bytes == 2) count |= (uint64_t)bytes[2 * i + 1] << 8;
    if (head % CHUNK_ALIGNMENT || count > limit) return false;
    bool is_empty = shape->has_slots ? count == limit : count == 0;
    disagree += is_empty != (head == 0) && !(shape->has_slots && count == 0 && head == 0);
    tcache->heads[i] = head;
    tcache->counts[i] = count;
    if (head == 0) continue;
    struct list list = tcache_list(i);
    struct entry entry;
    ++used;
    good += read_entry(heap, &list, head - HEADER_BYTES, &entry);
  }
  return good > 0 && used - good <= 1 && (disagree <= 1 || shape->has_slots);
}

/* +1: combined with its place, -1: plain, 0: no answer. */
static int vote(const struct heap *heap, uint64_t chunk) {
  uint64_t link = 0, place = chunk + HEADER_BYTES;
  memory_peek(heap->target, place, &link, sizeof link);
  if (link == 0) return -1;
  uint64_t plain = link, combined = link ^ place >> 12;
  if (combined == 0) return 1;
  bool may_be_plain = plain % 16 == 0 && region_of(heap, plain);
  bool may_be_combined = combined % 16 == 0 && region_of(heap, combined);
  return (int)may_be_combined - (int)may_be_plain;
}

static uint64_t fast_head(const struct heap *heap, const struct arena *arena, unsigned bin) {
  uint64_t head = 0, offset = heap->layout.bins_offset - 16 - 8 * FIRST_BINS;
  if (heap->layout.bins_offset >= NO_FASTBINS_BELOW)
    memory_read(heap->target, arena->address + offset + 8 * bin, &head, sizeof head);
  return head;
}

static void choose_links(struct heap *heap, const struct tcache *tcaches, size_t count) {
  int votes = 0;
  for (size_t i = 0; i < count; ++i)
    for (unsigned bin = 0; bin < tcaches[i].shape->bins; ++bin)
      if (tcaches[i].heads[bin]) votes += vote(heap, tcaches[i].heads[bin] - HEADER_BYTES);
  for (size_t i = 0; i < heap->arena_count; ++i)
    for (unsigned bin = 0; bin < FIRST_BINS; ++bin) {
      uint64_t head = fast_head(heap, &heap->arenas[i], bin);
      if (region_of(heap, head)) votes += vote(heap, head);
    }
  heap->layout.is_safe_linked = votes > 0;
}

static struct list fast_list(const struct arena *arena, unsigned bin) {
  struct list list = {DAMAGED_FASTBIN, IN_FASTBIN,       (bin + 2) * 16, bin,
                      arena->address,  FAST_ENTRIES_MAX, arena->address};
  return list;
}

bool caches_are_long(struct heap *heap) {
  uint64_t length = 0;
  memory_forget();
  choose_links(heap, NULL, 0);
  for (size_t i = 0; i < heap->arena_count; ++i)
    for (unsigned bin = 0; bin < FIRST_BINS; ++bin) {
      struct list list = fast_list(&heap->arenas[i], bin);
      uint64_t chunk = fast_head(heap, &heap->arenas[i], bin);
      struct entry entry;
      while (chunk && read_entry(heap, &list, chunk, &entry)) {
        if (++length > LONG) return true;
        chunk = next_of(heap, chunk, entry.next);
      }
    }
  return false;
}

void caches_note(const struct heap *heap, struct marks *marks, const struct chunk *chunk,
                 const uint8_t *bytes) {
  if (chunk->bytes > FAST_MAX) return;
  uint64_t next = next_of(heap, chunk->address, word_at(bytes + HEADER_BYTES));
  link_note(marks, chunk->address, chunk->bytes, next);
}

size_t caches_find(struct heap *heap, const struct candidates *candidates, struct marks *marks,
                   struct findings *findings) {
  struct tcache *tcaches = NULL;
  size_t count = 0;
  memory_forget();
  for (size_t i = 0; i < candidates->count; ++i) {
    if ((count & (count - 1)) == 0) tcaches = allocated(tcaches, 2 * (count + 1) * sizeof *tcaches);
    if (read_tcache(heap, candidates->chunks[i], &tcaches[count])) ++count;
  }
  choose_links(heap, tcaches, count);
  for (size_t i = 0; i < count; ++i) {
    const struct region *region = region_of(heap, tcaches[i].chunk);
    heap->layout.tcache_bytes = tcaches[i].shape->bytes;
    for (unsigned bin = 0; region && bin < tcaches[i].shape->bins; ++bin) {
      struct list list = tcache_list(bin);
      list.holder = tcaches[i].chunk;
      list.arena = heap->arenas[region->arena].address;
      walk_list(heap, &list, tcaches[i].heads[bin], marks, findings);
    }
  }
  for (size_t i = 0; i < heap->arena_count; ++i)
    for (unsigned bin = 0; bin < FIRST_BINS; ++bin) {
      struct list list = fast_list(&heap->arenas[i], bin);
      walk_list(heap, &list, fast_head(heap, &heap->arenas[i], bin), marks, findings);
    }
  free(tcaches);
  return count;
}
