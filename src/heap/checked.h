/* checked.h: the checked path, which all calls take in hardened mode (HAKMEM_HARDEN).
 *
 * No magazine has a slot then, so both fast paths fall through to the slow ones, which come here.
 *
 *   malloc   a random free block of a slab ── all zero? ── live bit set ── trailer written
 *   free     live bit cleared ── trailer whole? ── zeroed ── quarantine ── all zero still? ── slab
 *
 * Each block of a slab has a live bit (pool/superslab.h), changed atomically: a second free is found at
 * once, whoever does it.  Blocks above 32 KiB lie between inaccessible pages, with their end at the
 * second one, and are inaccessible altogether once they are freed. */
#ifndef HAK_HEAP_CHECKED_H
#define HAK_HEAP_CHECKED_H

#include "heap/slow_path.h"

/* Called once, when the options have been read. */
void checked_init(void);

/* A block that reads as zero, or NULL. */
void *checked_allocate(struct heap *heap, struct allocation *allocation);
/* Frees what is a block by its map entry, as what was made by `maker`; `heap` may be NULL. */
void checked_free(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker);
/* As heap_ask, for an address inside the window: the bytes are those that were asked for. */
enum block_kind checked_ask(uintptr_t block, uint32_t entry, const char *verb,
                            size_t *requested_bytes);
/* The bytes that were asked for, without a word: false when block number `index` of a slab is free. */
bool checked_slab_block(const struct slab *slab, unsigned index, size_t *requested_bytes);
/* The same of the live range that begins at `granule`; where the system tells safely even if another thread frees
 * it meanwhile. */
size_t checked_range_block(size_t granule, bool is_safe);
/* Changes what was asked for, when the block has room for it; false when it must move. */
bool checked_resize(uintptr_t block, size_t bytes);
/* Of a live block that realloc is called with: it is malloc's from now on, after a word if it was not. */
void checked_become_mallocs(uintptr_t block);

#endif
