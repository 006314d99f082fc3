#include "marks.h"

#include <stdlib.h>
#include <string.h>

#include "target.h"

enum { LEAF_SHIFT = 19, PAGE_SHIFT = 12, GRANULE_SHIFT = 4, GRANULE_BYTES = 1 << GRANULE_SHIFT };
enum { LEAF_BYTES = 1 << (LEAF_SHIFT - GRANULE_SHIFT - 2), LEAVES_BYTES_MAX = 96 << 20 };
enum { PAGES = 1 << (LEAF_SHIFT - PAGE_SHIFT), PAGE_WORDS = 4 };
enum { LINKS_STEP = 1 << 20, LINKS_MAX = 16 * LINKS_STEP, SIZE_BITS = 4, DELTA_MAX = 1 << 27 };

struct page {
  uint64_t bits[PAGE_WORDS]; /* one for each granule: a chunk with a link begins there */
  uint32_t first;            /* the number of the page's first link */
};

struct leaf {
  uint64_t number;
  uint8_t bits[LEAF_BYTES];
  struct page pages[]; /* if links are noted */
};

void marks_clear(struct marks *marks) {
  for (size_t i = 0; i < marks->room; ++i) free(marks->leaves[i]);
  free(marks->leaves);
  free(marks->links);
  memset(marks, 0, sizeof *marks);
}

static struct leaf **place_of(const struct marks *marks, uint64_t number) {
  size_t place = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (marks->room - 1);
  while (marks->leaves[place] && marks->leaves[place]->number != number)
    place = (place + 1) & (marks->room - 1);
  return &marks->leaves[place];
}

static void grow(struct marks *marks) {
  struct marks old = *marks;
  marks->room = old.room ? 2 * old.room : 256;
  marks->leaves = allocated(NULL, marks->room * sizeof(struct leaf *));
  memset(marks->leaves, 0, marks->room * sizeof(struct leaf *));
  for (size_t i = 0; i < old.room; ++i)
    if (old.leaves[i]) *place_of(marks, old.leaves[i]->number) = old.leaves[i];
  free(old.leaves);
}

static unsigned granule_of(uint64_t chunk) {
  return (unsigned)(chunk >> GRANULE_SHIFT) & ((1u << (LEAF_SHIFT - GRANULE_SHIFT)) - 1);
}

static struct leaf *leaf_of(const struct marks *marks, uint64_t chunk) {
  return marks->count ? *place_of(marks, chunk >> LEAF_SHIFT) : NULL;
}

/* NULL: there is no room for it. */
static struct leaf *leaf_for(struct marks *marks, uint64_t chunk) {
  size_t bytes = sizeof(struct leaf) + (marks->notes_links ? PAGES * sizeof(struct page) : 0);
  if (2 * marks->count >= marks->room) grow(marks);
  struct leaf **place = place_of(marks, chunk >> LEAF_SHIFT);
  if (*place == NULL && marks->count < LEAVES_BYTES_MAX / bytes) {
    *place = allocated(NULL, bytes);
    memset(*place, 0, bytes);
    (*place)->number = chunk >> LEAF_SHIFT;
    ++marks->count;
  }
  return *place;
}

void mark_set(struct marks *marks, uint64_t chunk, enum mark mark) {
  struct leaf *leaf = leaf_for(marks, chunk);
  unsigned granule = granule_of(chunk);
  marks->is_full |= leaf == NULL;
  if (leaf) leaf->bits[granule / 4] |= (uint8_t)((unsigned)mark << granule % 4 * 2);
}

enum mark mark_of(const struct marks *marks, uint64_t chunk) {
  const struct leaf *leaf = leaf_of(marks, chunk);
  if (leaf == NULL) return NOT_CACHED;
  unsigned granule = granule_of(chunk), bits = leaf->bits[granule / 4] >> granule % 4 * 2 & 3u;
  return bits & IN_TCACHE ? IN_TCACHE : bits ? IN_FASTBIN : NOT_CACHED;
}

/* ---- links ---- */

static unsigned count_bits(uint64_t word) {
  word -= word >> 1 & UINT64_C(0x5555555555555555);
  word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
  word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The granule's place in the bits of its page. */
static unsigned word_of(unsigned granule) { return granule / 64 % PAGE_WORDS; }

static struct page *page_of(struct leaf *leaf, unsigned granule) {
  return &leaf->pages[granule / (64 * PAGE_WORDS)];
}

void link_note(struct marks *marks, uint64_t chunk, uint64_t bytes, uint64_t next) {
  int64_t delta = (int64_t)(next - chunk) / GRANULE_BYTES;
  bool is_near = next % GRANULE_BYTES == 0 && delta >= -DELTA_MAX && delta < DELTA_MAX;
  if (!is_near || chunk <= marks->last_noted || marks->link_count == LINKS_MAX) return;
  struct leaf *leaf = leaf_for(marks, chunk);
  if (leaf == NULL) return;
  size_t number = marks->link_count++;
  if (number % LINKS_STEP == 0)
    marks->links = allocated(marks->links, (number + LINKS_STEP) * sizeof *marks->links);
  marks->links[number] = (uint32_t)delta << SIZE_BITS | (uint32_t)(bytes / GRANULE_BYTES);
  unsigned granule = granule_of(chunk);
  struct page *page = page_of(leaf, granule);
  if (marks->last_noted >> PAGE_SHIFT != chunk >> PAGE_SHIFT) page->first = (uint32_t)number;
  page->bits[word_of(granule)] |= UINT64_C(1) << granule % 64;
  marks->last_noted = chunk;
}

uint64_t link_noted(const struct marks *marks, uint64_t chunk, uint64_t bytes) {
  struct leaf *leaf = marks->notes_links ? leaf_of(marks, chunk) : NULL;
  if (leaf == NULL) return 0;
  unsigned granule = granule_of(chunk), word = word_of(granule);
  const struct page *page = page_of(leaf, granule);
  uint64_t bit = UINT64_C(1) << granule % 64;
  if (!(page->bits[word] & bit)) return 0;
  size_t number = page->first + count_bits(page->bits[word] & (bit - 1));
  while (word > 0) number += count_bits(page->bits[--word]);
  uint32_t link = marks->links[number];
  if (link % (1 << SIZE_BITS) != bytes / GRANULE_BYTES) return 0;
  return chunk + (uint64_t)((int32_t)link >> SIZE_BITS) * GRANULE_BYTES;
}
