/* checked.h: the checked path, which all calls take in hardened mode (HAKMEM_HARDEN).
 *
 * No magazine has a slot then, so both fast paths fall through to the slow ones, which come here.
 *
 *   malloc   a block that is ready (quarantine.h) ── still zero? ── live bit set ── trailer written
 *   free     live bit cleared ── trailer and slack whole? ── both sides as they should be? ── wiped ── quarantine
 *
 * Each block of a slab has a live bit (live.h), changed atomically: a second free is found at once, whoever does it.  Those of
 * named heaps come from their slab and go there, without a quarantine (heap/in_named.c).
 * Blocks above 32 KiB are alone between closed pages (checked_range.h), and malloc(0) is on one (guard/nothing.h). */
#ifndef HAK_HARDENED_CHECKED_H
#define HAK_HARDENED_CHECKED_H

#include "cache/allocation.h"
#include "cache/heap.h"

/* Called once, when the options have been read. */
void checked_init(void);

/* The slab class whose blocks have the alignment and room for a trailer; SLAB_CLASS_COUNT when there is none: then it is a
 * range. */
unsigned checked_class_of(size_t size, size_t alignment);
/* A block, or NULL. */
void *checked_allocate(struct heap *heap, struct allocation *allocation);
/* The same where a block is ready; NULL where none is, and what else there is must be asked. */
void *checked_malloc_ready(struct heap *heap, size_t size, enum maker maker);
/* The block of a slab that a named heap has taken: under the heap's latch, so that whoever has it next, a forked child too, finds
 * it wholly live or not at all.  False, and nothing done, when a thread that checks it from beside has it for a moment. */
bool checked_begin(uintptr_t block, unsigned class, size_t size, enum maker maker);
/* The block of a named heap's slab is freed: nobody else may claim it, it is checked, and reads as zero.  False, after a word, when
 * it is none that lives.  `verb` is what the program tried; `heap`, the thread's, may be NULL. */
bool checked_end(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                 const char *verb);
/* The same where nothing may be said, as its heap's latch is held.  False, and nothing done, when there is something to
 * say; true of what does not live. */
bool checked_end_silently(uintptr_t block, uint32_t entry);
/* Frees what is a block by its map entry, as what was made by `maker`; `heap` may be NULL. */
void checked_free(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker);
/* The same of a range that a named heap has let go of: `entry` is the one that it had while it was the heap's, so that what is
 * said of it names that heap.  `verb` as above. */
void checked_free_range(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                        const char *verb);
/* The same of a block of a slab; false, and nothing done, when it is none by its map entry, or the thread is new. */
bool checked_free_ready(struct heap *heap, uintptr_t block, enum maker maker);
/* Whether a live block begins at an address inside the window (reported when not; `verb` is what the program tried), and
 * how many bytes were asked for. */
bool checked_ask(uintptr_t block, uint32_t entry, const char *verb, size_t *requested_bytes);
/* The bytes that were asked for, without a word: false when the block of a slab is free. */
bool checked_slab_block(uintptr_t block, size_t block_bytes, size_t *requested_bytes);
/* The same of the live range that begins at `granule`; where the system tells safely even if another thread frees
 * it meanwhile. */
size_t checked_range_block(size_t granule, bool is_safe);
/* Changes what was asked for, when the block has room for it; false when it must move. */
bool checked_resize(uintptr_t block, size_t bytes);
/* The same of a block that has room for it and cannot move: as little as its trailer can say. */
void checked_shrink(uintptr_t block, size_t bytes);
/* What made a live block. */
enum maker checked_maker(uintptr_t block);
/* Of a live block that realloc is called with: it is malloc's from now on, after a word if it was not. */
void checked_become_mallocs(uintptr_t block);

#endif
