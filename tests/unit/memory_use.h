/* memory_use.h: small and Big blocks that come and go, and leave something to be given back. */
#ifndef MEMORY_USE_H
#define MEMORY_USE_H

#include "heaps.h"

#define MIB ((size_t)1 << 20)

enum { SMALL_BLOCKS = 50000 };

static void *blocks[SMALL_BLOCKS];

static inline void use_memory(void) {
  for (unsigned index = 0; index < SMALL_BLOCKS; index++) blocks[index] = must_malloc(200);
  for (unsigned index = 0; index < SMALL_BLOCKS; index++) hak_free(blocks[index]);
  for (unsigned index = 0; index < 8; index++) blocks[index] = must_malloc(3 * MIB);
  for (unsigned index = 0; index < 8; index++) hak_free(blocks[index]);
}

#endif
