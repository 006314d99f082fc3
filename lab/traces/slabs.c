#include "traces/slabs.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

/* ---- lists ----------------------------------------------------------------------------------- */

static void list(struct slabs *slabs, struct slab *slab) {
  if (slab->owner != COMMONS && !slabs->owns[slab->owner][slab->class]) slab->owner = COMMONS;
  struct slab **head = &slabs->lists[slab->owner][slab->class];
  slab->previous = NULL;
  slab->next = *head;
  if (*head) (*head)->previous = slab;
  *head = slab;
  slab->is_listed = true;
}

static void unlist(struct slabs *slabs, struct slab *slab) {
  if (slab->next) slab->next->previous = slab->previous;
  if (slab->previous)
    slab->previous->next = slab->next;
  else
    slabs->lists[slab->owner][slab->class] = slab->next;
  slab->is_listed = false;
}

/* The slab keeps its touched pages, whichever class takes it. */
static struct slab *fresh(struct slabs *slabs, uint16_t owner, unsigned class) {
  unsigned slots = slots_of_class(class);
  struct slab *slab = slabs->pool[slots];
  if (slab)
    slabs->pool[slots] = slab->next;
  else if (!(slab = calloc(1, sizeof *slab)))
    abort();
  slab->owner = owner;
  slab->class = (uint8_t) class;
  slab->capacity = slab->free_count = slab_shapes[class].capacity;
  slab->handed_out = 0;
  list(slabs, slab);
  return slab;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct lines {
  size_t first, last;
};

static struct lines lines_of(const struct slab *slab, size_t index) {
  size_t bytes = class_bytes(slab->class), begin = index * bytes;
  return (struct lines){begin / LINE_BYTES, (begin + bytes - 1) / LINE_BYTES};
}

static bool has_other(const struct slab *slab, size_t line, uint16_t thread) {
  return slab->line_count[line] && slab->line_thread[line] != thread;
}

/* Only the first and the last line can have another block. */
static bool is_shared(const struct slab *slab, size_t index, uint16_t thread) {
  struct lines lines = lines_of(slab, index);
  return has_other(slab, lines.first, thread) || has_other(slab, lines.last, thread);
}

/* The free blocks of a word that may be handed out. */
static uint64_t free_of_word(const struct slab *slab, size_t word, uint16_t thread,
                             bool keeps_lines) {
  size_t count = slab->capacity - word * 64;
  uint64_t free = ~slab->taken[word] & low_bits(count < 64 ? (unsigned)count : 64);
  if (!keeps_lines) return free;
  for (uint64_t left = free; left; left &= left - 1) {
    unsigned bit = lowest_bit(left);
    if (is_shared(slab, word * 64 + bit, thread)) free &= ~(UINT64_C(1) << bit);
  }
  return free;
}

/* The lowest word that has any; at or above the capacity where there is none. */
static size_t find(const struct slab *slab, uint16_t thread, bool keeps_lines) {
  size_t word = 0;
  while (word * 64 < slab->capacity && !free_of_word(slab, word, thread, keeps_lines)) word++;
  return word;
}

static void touch(struct slabs *slabs, struct slab *slab, size_t index) {
  size_t bytes = class_bytes(slab->class);
  for (size_t page = index * bytes / PAGE_BYTES; page <= ((index + 1) * bytes - 1) / PAGE_BYTES;
       page++) {
    uint64_t bit = UINT64_C(1) << page;
    slabs->touched_pages += !(slab->touched & bit);
    slab->touched |= bit;
  }
}

static void count_lines(struct slab *slab, size_t index, uint16_t thread, int change) {
  struct lines lines = lines_of(slab, index);
  slab->line_count[lines.first] = (uint8_t)(slab->line_count[lines.first] + change);
  if (lines.last != lines.first)
    slab->line_count[lines.last] = (uint8_t)(slab->line_count[lines.last] + change);
  if (change > 0) slab->line_thread[lines.first] = slab->line_thread[lines.last] = thread;
}

/* ---- for caches ------------------------------------------------------------------------------ */

/* With `keeps_lines` a slab may have free blocks and none for this thread: at most LOOKS_MAX are
 * looked at. */
enum { LOOKS_MAX = 8 };

static void take_one(struct slabs *slabs, struct slab *slab, uint16_t thread, size_t index) {
  slabs->shared_lines += is_shared(slab, index, thread);
  slab->taken[index / 64] |= UINT64_C(1) << index % 64;
  if (index >= slab->handed_out) slab->handed_out = (uint32_t)index + 1;
  count_lines(slab, index, thread, 1);
  touch(slabs, slab, index);
  if (!--slab->free_count) unlist(slabs, slab);
}

/* Takes blocks below `end` of one word. */
static size_t take_word(struct slabs *slabs, struct slab *slab, uint16_t thread, size_t word,
                        size_t end, bool keeps_lines, struct block *blocks, size_t most) {
  size_t count = 0;
  for (uint64_t free = free_of_word(slab, word, thread, keeps_lines); free && count < most;
       free &= free - 1) {
    size_t index = word * 64 + lowest_bit(free);
    if (index >= end) break;
    take_one(slabs, slab, thread, index);
    blocks[count++] = (struct block){slab, (uint32_t)index};
  }
  return count;
}

size_t slabs_take(struct slabs *slabs, uint16_t owner, uint16_t thread, unsigned class,
                  bool keeps_lines, struct block *blocks, size_t most) {
  struct slab *slab = slabs->lists[owner][class];
  size_t word = 0;
  for (unsigned looks = 0; slab && looks < LOOKS_MAX; slab = slab->next, looks++)
    if ((word = find(slab, thread, keeps_lines)) * 64 < slab->capacity) break;
  if (!slab || word * 64 >= slab->capacity) {
    slab = fresh(slabs, owner, class);
    word = 0;
  }
  return take_word(slabs, slab, thread, word, slab->capacity, keeps_lines, blocks, most);
}

static bool has_used(const struct slab *slab) {
  return slab->free_count > slab->capacity - slab->handed_out;
}

bool slabs_has_used(struct slabs *slabs, uint16_t thread, unsigned class) {
  const struct slab *slab = slabs->lists[thread][class];
  for (unsigned looks = 0; slab && looks < LOOKS_MAX; slab = slab->next, looks++)
    if (has_used(slab)) return true;
  return false;
}

/* The lowest word has used blocks, as fresh ones are last. */
size_t slabs_borrow(struct slabs *slabs, uint16_t thread, unsigned class, bool keeps_lines,
                    struct block *blocks, size_t most) {
  for (unsigned step = 1; step < slabs->threads; step++) {
    uint16_t lender = (uint16_t)((thread + step) % slabs->threads);
    struct slab *slab = slabs->lists[lender][class];
    for (unsigned looks = 0; slab && looks < LOOKS_MAX; slab = slab->next, looks++) {
      size_t word = find(slab, thread, keeps_lines), end = slab->handed_out;
      if (word * 64 >= end) continue;
      size_t count = take_word(slabs, slab, thread, word, end, keeps_lines, blocks, most);
      if (count) return count;
    }
  }
  return 0;
}

void slabs_give(struct slabs *slabs, struct block block) {
  struct slab *slab = block.slab;
  slab->taken[block.index / 64] &= ~(UINT64_C(1) << block.index % 64);
  count_lines(slab, block.index, 0, -1);
  if (!slab->is_listed) list(slabs, slab);
  if (++slab->free_count < slab->capacity) return;
  unlist(slabs, slab);
  unsigned slots = slots_of_class(slab->class);
  slab->next = slabs->pool[slots];
  slabs->pool[slots] = slab;
}

bool slabs_claim(struct slabs *slabs, uint16_t thread, unsigned class) {
  slabs->owns[thread][class] = true;
  if (thread >= slabs->threads) slabs->threads = thread + 1u;
  struct slab *slab = slabs->lists[COMMONS][class];
  if (!slab) return false;
  unlist(slabs, slab);
  slab->owner = thread;
  list(slabs, slab);
  return true;
}

void slabs_release(struct slabs *slabs, uint16_t thread, unsigned class) {
  slabs->owns[thread][class] = false;
  for (struct slab *slab; (slab = slabs->lists[thread][class]);) {
    unlist(slabs, slab);
    list(slabs, slab);
  }
}
