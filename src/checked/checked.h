/* checked.h: the checked path, which all calls take in hardened mode (HAKMEM_HARDEN).
 *
 * No magazine has a slot then, and no entry of the owner map is a magazine's, so both fast paths
 * fall through to the slow ones, which come here (heap/kinds.h).
 *
 *   malloc   a block that is ready (quarantine.h) ── still zero? ── live bit set ── trailer written
 *   free     live bit cleared ── trailer and slack whole? ── both sides intact? ── wiped ── quarantine
 *
 * Each block of a slab has a live bit (live.h), changed atomically: a second free by any thread is
 * found at once. Blocks of named heaps come from their slab and return there, without a quarantine
 * (heap/in_named.c). Larger blocks (hardened/wipe.h) are alone between closed pages
 * (checked_range.h), and malloc(0) is on one (hardened/nothing.h). */
#ifndef HAK_CHECKED_CHECKED_H
#define HAK_CHECKED_CHECKED_H

#include "cache/heap.h"
#include "map/allocation.h"

/* Called once, when the options have been read. */
void checked_init(void);

/* The slab class whose blocks have the alignment and room for a trailer; SLAB_CLASS_COUNT when
 * there is none: then it is a range. */
unsigned checked_class_of(size_t size, size_t alignment);
/* A block, or NULL. */
void *checked_allocate(struct heap *heap, struct allocation *allocation);
/* checked_allocate where a block is ready; NULL where none is, and the full path must be taken. */
void *checked_take_ready(struct heap *heap, size_t size, size_t alignment, enum maker maker);
/* Makes a slab's block live that a named heap has taken: under the heap's latch, so that the
 * latch's next holder, a forked child too, finds it wholly live or not at all. False, and nothing
 * done, when a thread that checks it from beside holds it for a moment. */
bool checked_begin(uintptr_t block, unsigned class, size_t size, enum maker maker);
/* Ends a named heap's block in a slab: no other thread may claim it, it is checked, and reads as
 * zero. False, after a report, when it is not live. `verb` names the operation tried; `heap`, the
 * thread's, may be NULL. */
bool checked_end(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                 const char *verb);
/* checked_end where nothing may be reported, as its heap's latch is held. False, and nothing done,
 * when there is something to report; true for a block that is not live. */
bool checked_end_silently(uintptr_t block, uint32_t entry);
/* Frees a thread's block of a slab, by its map entry, that must have been made by `maker`; `heap`
 * may be NULL. True when memory went back to slabs. */
bool checked_free(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker);
/* checked_free for a range. One that a named heap has given up: `entry` is its entry while it was
 * the heap's, so that reports name that heap. `verb` as above. */
void checked_free_range(struct heap *heap, uintptr_t block, uint32_t entry, enum maker maker,
                        const char *verb);
/* Whether a live block begins at an address inside the window (reported when not; `verb` names the
 * operation tried), and the bytes that were asked for. */
bool checked_ask(uintptr_t block, uint32_t entry, const char *verb, size_t *requested_bytes);
/* The bytes that were asked for, without a report: false when the block of a slab is free. */
bool checked_slab_block(uintptr_t block, size_t block_bytes, size_t *requested_bytes);
/* Changes the requested bytes, when the block has room; false when it must move. */
bool checked_resize(uintptr_t block, size_t bytes);
/* For a block that has room and cannot move: to the smallest size that its trailer can hold. */
void checked_shrink(uintptr_t block, size_t bytes);
/* The maker of a live block. */
enum maker checked_maker(uintptr_t block);
/* Called for a live block passed to realloc: its maker is malloc from now on; reports if it was
 * another. */
void checked_become_mallocs(uintptr_t block);

#endif
