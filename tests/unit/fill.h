/* fill.h: as many blocks of a size as memory holds, in a chain, so that the test needs no memory of
 * its own. */
#ifndef FILL_H
#define FILL_H

#include "config/limits.h"
#include "heaps.h"

struct link {
  struct link *next;
  size_t size;
};

/* NULL when memory has none. */
static inline struct link *push_block(struct link *chain, size_t size) {
  struct link *block = (errno = 0, hak_malloc(size));
  REQUIRE(!limits.hard_bytes || load_relaxed(&totals.committed_bytes) <= limits.hard_bytes);
  if (!block) {
    REQUIRE(errno == ENOMEM);
    return NULL;
  }
  *block = (struct link){chain, size};
  if (size > sizeof *block) ((unsigned char *)block)[size - 1] = 0x5a;
  return block;
}

/* Allocates until there is no more; the bytes it got. */
static inline size_t fill(struct link **chain, size_t size) {
  size_t bytes = 0;
  for (struct link *block; (block = push_block(*chain, size)); bytes += size) *chain = block;
  return bytes;
}

static inline void empty(struct link **chain) {
  while (*chain) {
    struct link *block = *chain;
    size_t size = block->size;
    *chain = block->next;
    if (size > sizeof *block) REQUIRE(((unsigned char *)block)[size - 1] == 0x5a);
    hak_free(block);
  }
}

static const size_t fill_sizes[] = {16, 200, 1000, 5000, 32 << 10, 100 << 10, 1 << 20, 3 << 20};
enum { SIZE_COUNT = sizeof fill_sizes / sizeof fill_sizes[0] };

#endif
