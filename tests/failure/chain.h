/* chain.h: as many blocks as memory holds, linked through themselves: the bookkeeping of a test
 * that runs out of memory must not need any.  The head of each block is stamped. */
#ifndef TESTS_FAILURE_CHAIN_H
#define TESTS_FAILURE_CHAIN_H

#include "api/check.h"
#include "api/stamp.h"

enum { CHAIN_STAMP_MAX_BYTES = 256 };

typedef struct link {
  struct link *next;
  unsigned char stamp[];
} chain_link;

static inline size_t chain_stamp_bytes(size_t size) {
  size_t room = size - sizeof(chain_link);
  return room < CHAIN_STAMP_MAX_BYTES ? room : CHAIN_STAMP_MAX_BYTES;
}

/* One more block in front of `chain`, touched all over or just stamped; false when memory has
 * none. */
static inline bool chain_add(chain_link **chain, size_t size, bool is_touched) {
  errno = 0;
  chain_link *block = malloc(size);
  if (block == NULL) {
    CHECK_MSG(errno == ENOMEM, "errno %d", errno);
    return false;
  }
  if (is_touched) memset(block, 1, size);
  stamp_write(block->stamp, chain_stamp_bytes(size), (uintptr_t)block);
  block->next = *chain;
  *chain = block;
  return true;
}

/* Allocates until NULL; returns how many blocks there were. */
static inline size_t chain_grow(chain_link **chain, size_t size) {
  size_t count = 0;
  while (chain_add(chain, size, false)) count++;
  return count;
}

/* The same, touching all of each block. */
static inline size_t chain_grow_touched(chain_link **chain, size_t size) {
  size_t count = 0;
  while (chain_add(chain, size, true)) count++;
  return count;
}

/* Checks and frees every `every`-th block. */
static inline void chain_thin(chain_link **chain, size_t size, size_t every) {
  chain_link **at = chain;
  for (size_t i = 1; *at != NULL; i++) {
    chain_link *block = *at;
    CHECK(stamp_holds(block->stamp, chain_stamp_bytes(size), (uintptr_t)block));
    if (i % every == 0) {
      *at = block->next;
      free(block);
    } else {
      at = &block->next;
    }
  }
}

static inline void chain_free(chain_link **chain, size_t size) { chain_thin(chain, size, 1); }

/* So many bytes in blocks of one size, all touched, come and go. */
static inline void chain_swing(size_t size, size_t bytes) {
  chain_link *chain = NULL;
  for (size_t done = 0; done < bytes; done += size) CHECK(chain_add(&chain, size, true));
  chain_free(&chain, size);
}

#endif
