/* account.h: the sums over all chunks, by arena and by size, and the file of blocks. */
#ifndef HAK_WALK_ACCOUNT_H
#define HAK_WALK_ACCOUNT_H

#include "caches.h"
#include "chunks.h"

enum { EXACT_BYTES = 1 << 20, EXACT_SIZES = EXACT_BYTES / CHUNK_ALIGNMENT + 1, STEPS = 32 };
enum { SIZES = EXACT_SIZES + 48 * STEPS };

struct account_of_sizes {
  uint64_t live, cached, free;
};

struct accounts {
  const struct heap *heap;
  struct marks *marks;
  struct account_of_sizes *sizes;
  int blocks; /* file; -1: none is wanted */
  uint64_t (*buffer)[2];
  size_t buffered, written, mmapped_written;
  /* Free chunks and those of fastbins in a row, which malloc_trim merges. */
  uint64_t run_begin, run_end;
};

void accounts_init(struct accounts *accounts, const struct heap *heap, struct marks *marks,
                   const char *path);
void account_chain(struct accounts *accounts, struct walk *walk);
void account_unknown(struct accounts *accounts, struct walk *walk, uint64_t begin, uint64_t end);
void account_headers(struct accounts *accounts, struct walk *walk, uint64_t begin, uint64_t end);
void account_top(struct accounts *accounts, struct walk *walk, uint64_t top);
/* Corrects what was counted, and written to the file, before the marks were set. */
void accounts_mark(struct accounts *accounts, struct heap *heap);
void accounts_end(struct accounts *accounts);
/* The largest size that is counted in this place. */
uint64_t size_of_place(size_t place);

#endif
