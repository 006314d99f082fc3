#include "marks.h"

#include <stdlib.h>
#include <string.h>

#include "target.h"

enum { LEAF_SHIFT = 19, GRANULE_SHIFT = 4, LEAF_BYTES = 1 << (LEAF_SHIFT - GRANULE_SHIFT - 2) };
enum { LEAVES_MAX = 12 << 10 }; /* 96 MiB */

struct leaf {
  uint64_t number;
  uint8_t bits[LEAF_BYTES];
};

void marks_clear(struct marks *marks) {
  for (size_t i = 0; i < marks->room; ++i) free(marks->leaves[i]);
  free(marks->leaves);
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

void mark_set(struct marks *marks, uint64_t chunk, enum mark mark) {
  if (2 * marks->count >= marks->room) grow(marks);
  struct leaf **place = place_of(marks, chunk >> LEAF_SHIFT);
  if (*place == NULL) {
    if (marks->count == LEAVES_MAX) {
      marks->is_full = true;
      return;
    }
    *place = allocated(NULL, sizeof **place);
    memset(*place, 0, sizeof **place);
    (*place)->number = chunk >> LEAF_SHIFT;
    ++marks->count;
  }
  unsigned granule = granule_of(chunk);
  (*place)->bits[granule / 4] |= (uint8_t)((unsigned)mark << granule % 4 * 2);
}

enum mark mark_of(const struct marks *marks, uint64_t chunk) {
  if (marks->count == 0) return NOT_CACHED;
  const struct leaf *leaf = *place_of(marks, chunk >> LEAF_SHIFT);
  if (leaf == NULL) return NOT_CACHED;
  unsigned granule = granule_of(chunk), bits = leaf->bits[granule / 4] >> granule % 4 * 2 & 3u;
  return bits & IN_TCACHE ? IN_TCACHE : bits ? IN_FASTBIN : NOT_CACHED;
}
