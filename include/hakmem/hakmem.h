/* SPDX-License-Identifier: MIT
 *
 * hakmem.h: the public C API of hakmem, a general-purpose memory allocator.
 *
 * A program needs none of this: preloading or linking the library replaces malloc and its
 * relatives.  Include this header for what the standard calls cannot express: a block's call site,
 * whether it can grow in place, handing memory back now, and the allocator's figures.
 *
 * Rules that hold for every function here, unless it says otherwise:
 *  - sizes and alignments are in bytes; sizes above PTRDIFF_MAX are refused;
 *  - every function may be called from any thread at any time, but not from a signal handler;
 *  - a block may be freed by any thread, through `free` or `hak_free` alike;
 *  - on failure an allocating function returns NULL and sets errno to ENOMEM, and a block
 *    passed to it stays valid and unchanged.
 */
#ifndef HAKMEM_HAKMEM_H
#define HAKMEM_HAKMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HAKMEM_VERSION_MAJOR 0
#define HAKMEM_VERSION_MINOR 1
#define HAKMEM_VERSION_PATCH 0

#define HAKMEM_TOKEN_TEXT(token) #token
#define HAKMEM_TEXT_OF(macro) HAKMEM_TOKEN_TEXT(macro)
/* "major.minor.patch" of this header; hak_version() tells the loaded library's. */
#define HAKMEM_VERSION                 \
  HAKMEM_TEXT_OF(HAKMEM_VERSION_MAJOR) \
  "." HAKMEM_TEXT_OF(HAKMEM_VERSION_MINOR) "." HAKMEM_TEXT_OF(HAKMEM_VERSION_PATCH)

#if defined(__GNUC__)
#define HAK_EXPORT __attribute__((visibility("default")))
#else
#define HAK_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the malloc family under hakmem's own names -------------------------------------------- */

/* A block of at least `size` bytes, uninitialised, aligned to 16 (to 8 when size <= 8).
 * `hak_malloc(0)` is a unique block that must be freed. */
HAK_EXPORT void *hak_malloc(size_t size);

/* A zeroed block for `count` objects of `size` bytes; NULL when count * size overflows. */
HAK_EXPORT void *hak_calloc(size_t count, size_t size);

/* Resizes `block`, keeping the smaller of the two sizes' content; the block may move.
 * `hak_realloc(NULL, n)` is `hak_malloc(n)`; `hak_realloc(p, 0)` frees p and returns NULL, as glibc
 * does. */
HAK_EXPORT void *hak_realloc(void *block, size_t size);

/* As hak_realloc(block, count * size), refusing an overflowing product. */
HAK_EXPORT void *hak_reallocarray(void *block, size_t count, size_t size);

/* Gives a block back.  NULL is allowed; errno is preserved.  An invalid, misaligned or doubly freed
 * pointer ends the program with one line on standard error that begins "hakmem: ". */
HAK_EXPORT void hak_free(void *block);

/* C23: as hak_free.  `size` (and `alignment`) must be those of the block's request, or of its last
 * resize.  If a size cannot be the block's, the first is reported as a warning, and the block is
 * freed all the same; with HAKMEM_HARDEN=1 each ends the program (HAKMEM_ON_MISUSE=warn: none
 * does). */
HAK_EXPORT void hak_free_sized(void *block, size_t size);
HAK_EXPORT void hak_free_aligned_sized(void *block, size_t alignment, size_t size);

/* A block whose address is a multiple of `alignment`, a power of two.  NULL and EINVAL for any
 * other alignment. */
HAK_EXPORT void *hak_aligned_alloc(size_t alignment, size_t size);

/* A zeroed block for `count` objects of `size` bytes at such an address; NULL when count * size
 * overflows.  Pages that are zero as they come from the system are not written. */
HAK_EXPORT void *hak_aligned_calloc(size_t alignment, size_t count, size_t size);

/* Stores such a block in *out and returns 0; returns EINVAL (alignment not a power of two multiple
 * of sizeof(void *)) or ENOMEM otherwise, leaving *out alone; errno is left alone too, except that
 * it becomes ENOMEM, as in glibc. */
HAK_EXPORT int hak_posix_memalign(void **out, size_t alignment, size_t size);

/* As hak_aligned_alloc, but an alignment that is not a power of two is rounded up to one, as in
 * glibc. */
HAK_EXPORT void *hak_memalign(size_t alignment, size_t size);

/* A block aligned to the page size; hak_pvalloc also rounds the size up to whole pages. */
HAK_EXPORT void *hak_valloc(size_t size);
HAK_EXPORT void *hak_pvalloc(size_t size);

/* Bytes that may be used at `block`: at least the requested size, constant during the block's whole
 * life.  0 for NULL. */
HAK_EXPORT size_t hak_malloc_usable_size(const void *block);

/* ---- beyond the standard ------------------------------------------------------------------- */

/* The usable size that hak_malloc(size) would give now (above 64 KiB at least that, while a heap is
 * in use); `size` itself when no such block can exist, and where a block may have no more than
 * that: in hardened and in guard mode, and above 64 KiB beside HAKMEM_LIMIT_HARD. */
HAK_EXPORT size_t hak_good_size(size_t size);

/* As hak_realloc, and every byte beyond the old *usable* size reads as zero.  To have all growth
 * zeroed, use it on blocks that came from hak_calloc or hak_rezalloc only. */
HAK_EXPORT void *hak_rezalloc(void *block, size_t size);

/* As hak_malloc, for a caller that knows the requesting site better than its return address
 * shows: blocks of the Large and Big tiers (above 64 KiB) are cached by `site`, so that a site
 * finds its own blocks again.  Any value will do; equal values mean the same site.  Smaller
 * blocks ignore it. */
HAK_EXPORT void *hak_malloc_site(size_t size, uint32_t site);

/* Grows or shrinks `block` to at least `size` usable bytes without moving it: `block`, or NULL when
 * that is impossible (then nothing changed and errno is left alone). */
HAK_EXPORT void *hak_expand(void *block, size_t size);

/* Gives free memory back to the operating system: memory that is old or too much, or with
 * `force` all free memory, the calling thread's own caches included.  Returns the bytes
 * handed back. */
HAK_EXPORT size_t hak_purge(bool force);

/* For a thread that is about to wait, such as an event loop: other threads may use the content of
 * its caches, and its free blocks, at once; the rest goes back to the operating system after the
 * decay time.  Its next requests fill the caches again, for some microseconds.  A thread that never
 * calls it counts as idle after the decay time.  Any thread may call it; its live blocks stay as
 * they are. */
HAK_EXPORT void hak_thread_idle(void);

/* Defragmentation: a few live blocks keep a slab of 64 KiB, and only the program can move them. It
 * asks, for as many of its blocks as it likes at a time, which lie in sparse slabs, and replaces
 * those, now and then or while it idles:
 *
 *   if (hak_worth_moving(blocks, count, answers) && hak_move_begin()) {
 *     for (size_t at = 0; at < count; at++)
 *       if (answers[at] >= 10) replace(at);     malloc, memcpy, its pointers, free
 *     hak_move_end();
 *   }
 *
 * answers[at] becomes the percentage of the slab of blocks[at] that is free (3 to 100), and 0 where
 * a move gains nothing: in a dense slab, in the one that mallocs take blocks from next, for blocks
 * above 64 KiB, of a heap of hak_heap_new, in hardened mode, and for NULL or memory of others.
 * Blocks in caches count as live.  A block must not be freed meanwhile.  Returns the number of
 * answers that are not 0.  Any thread may ask, also about other threads' blocks; it takes no lock
 * and calls nothing, some 10 ns a block.
 *
 * From hak_move_begin to hak_move_end the calling thread's mallocs (all of them; up to 64 KiB) take
 * blocks of the densest slabs that have room, and what it frees goes to its slab at once, not to a
 * cache: emptied slabs go back to the system within a quarter of the decay time.  Each call then
 * costs about 50 ns.  Blocks that are moved out of another thread's slab empty it when that thread
 * next allocates or idles.  False and ENOMEM without memory for the thread's heap, or when it is
 * ending.  Once begun, to begin again changes nothing, and one hak_move_end ends it.
 *
 * The idea is that of redis' activedefrag, which asks its jemalloc by je_get_defrag_hint. */
HAK_EXPORT size_t hak_worth_moving(void *const *blocks, size_t count, unsigned char *answers);
HAK_EXPORT bool hak_move_begin(void);
HAK_EXPORT void hak_move_end(void);

/* Switches this process's heap profile on, as the tool does from outside (docs/PROFILING.md): from
 * now on one block in about `period_bytes` allocated bytes is a sample, with the call stack of its
 * request; 0 lets the period adapt, 64 is the least. `hakmem profile`, `top` and `core` show the
 * samples.  The calling thread follows at once, any other when it next allocates or frees.  It
 * stays on until hak_profile_stop, or until the tool switches it off.  False when it was refused
 * (HAKMEM_PROFILE=never) or without memory for the library itself. */
HAK_EXPORT bool hak_profile_start(size_t period_bytes);

/* Switches it off, no matter how it was switched on; samples of live blocks are kept. */
HAK_EXPORT void hak_profile_stop(void);

/* True when `pointer` lies in memory that this allocator uses for blocks now: in a live block, or
 * in a free one beside live ones. */
HAK_EXPORT bool hak_owns(const void *pointer);

/* The number of bytes from `pointer`, which may lie anywhere inside a block, to the end of the
 * requested size; the names and their meaning are hardened_malloc's.
 *
 *   hardened mode        exact: the requested size less the offset; 0 in a free block, and past
 *                        the requested size
 *   guarded blocks       the same
 *   else                 up to the usable size; blocks that the library keeps for reuse look
 *                        like live ones
 *
 * 0 where the program has no block, as far as that is known; SIZE_MAX where it is unknown: NULL,
 * the stack, globals, blocks of another malloc.  Any value of `pointer` will do.  In hardened mode
 * the first reports a pointer into a free block as a misuse (HAKMEM_ON_MISUSE), as hardened_malloc
 * does; the fast one reports nothing.
 *
 * Both take no lock and may be called from signal handlers, too.  The fast one answers in bounded
 * time and without calling the system; in return it may say SIZE_MAX: deep inside a block above 16
 * MiB (not in hardened mode), and when it is called from the middle of an allocation (by a signal
 * handler, or by an interposed memset). */
HAK_EXPORT size_t malloc_object_size(const void *pointer);
HAK_EXPORT size_t malloc_object_size_fast(const void *pointer);

/* ---- heaps --------------------------------------------------------------------------------------
 *
 * A heap of the program's own, as mimalloc's heaps and jemalloc's arenas: its blocks lie in memory
 * that no other heap uses, all of them can be freed at once, it can be given a limit, and the tool
 * shows its figures by its name (`hakmem stat`, `why`, `export`).  Any thread may allocate in it,
 * by the functions here, and any may free its blocks, by `free`; malloc and its relatives use it
 * only on a thread that has called hak_heap_use.  `realloc` moves its blocks within
 * it.
 *
 * In hardened mode these blocks end with a trailer, as malloc's do: a write past one is reported
 * when it is freed, resized or asked for its size, and by hak_heap_free_all and hak_heap_destroy.
 * They have no quarantine: freed memory may be used again at once.  A double or an invalid free of
 * one is found in every mode.  A heap that was destroyed must not be used again: that is reported
 * as a misuse, as long as no other has taken its place. */
typedef struct hak_heap hak_heap;

/* A new heap; the tool shows it by its name (copied, up to 31 bytes); NULL: "heap N".  It is there
 * until hak_heap_destroy.  NULL and ENOMEM without memory for its record, or if 262,143 exist
 * already. */
HAK_EXPORT hak_heap *hak_heap_new(const char *name);

/* The calling thread's own heap, which malloc uses: to give it a name and a tag, and for
 * hak_heap_figures; hak_heap_malloc in it does not ask which heap is in use.  It is the same as
 * long as the thread lives, and ends with it.  NULL and ENOMEM as above, or when the thread is
 * ending. */
HAK_EXPORT hak_heap *hak_heap_of_thread(void);

/* The heap of a live block, if hak_heap_new made it; else NULL. */
HAK_EXPORT hak_heap *hak_heap_of(const void *block);

/* As hak_malloc, hak_calloc, hak_aligned_alloc, with a block of this heap.  NULL and ENOMEM, too,
 * when the heap's limit has no room for it.  A thread's heap serves that thread only; others get
 * NULL and EPERM. */
HAK_EXPORT void *hak_heap_malloc(hak_heap *heap, size_t size);
HAK_EXPORT void *hak_heap_calloc(hak_heap *heap, size_t count, size_t size);
HAK_EXPORT void *hak_heap_aligned_alloc(hak_heap *heap, size_t alignment, size_t size);

/* As hak_realloc, and the block is this heap's afterwards, wherever it was before. */
HAK_EXPORT void *hak_heap_realloc(hak_heap *heap, void *block, size_t size);

/* How the tool shows it: a name as of hak_heap_new; a number of the program's own, such as a
 * tenant's (0 at first). */
HAK_EXPORT void hak_heap_set_name(hak_heap *heap, const char *name);
HAK_EXPORT void hak_heap_set_tag(hak_heap *heap, uint64_t tag);

/* Refuses blocks that would bring the heap's live bytes, with sizes as rounded up (in hardened mode
 * after adding 8 bytes for the trailer), above `bytes`; 0: no limit.  Live blocks stay.  False and
 * EINVAL for a thread's heap, whose memory other threads take over. */
HAK_EXPORT bool hak_set_limit(hak_heap *heap, size_t bytes);

/* Figures of a heap at this moment. */
struct hak_figures {
  /* in blocks, with sizes as rounded up; in a thread's heap also free memory kept for reuse */
  uint64_t live_bytes;
  uint64_t live_blocks; /* in a thread's heap 0: not counted */
  /* the highest live_bytes; where threads have met in the heap, too low by at most some KiB for
   * each thread and size; in a thread's heap 0 */
  uint64_t peak_bytes;
  uint64_t limit_bytes; /* 0: none */
  uint64_t refusals;    /* requests that the limit has refused */
  uint64_t allocations; /* blocks that it has given out so far; in a thread's heap 0 */
  uint64_t tag;
  char name[32];
};
/* Writes as many bytes of them as the caller's struct has (sizeof), so that later versions may add
 * to it. */
HAK_EXPORT void hak_heap_figures(hak_heap *heap, struct hak_figures *figures, size_t figures_bytes);

/* From now on malloc and its relatives (all of the C library's, operator new, hak_malloc and its
 * family) give the calling thread blocks of this heap: so a plug-in, a request or a tenant is
 * measured, limited, or freed at once, without a change to its code.  NULL, or the thread's own
 * heap, ends that.  Similar to mimalloc's mi_heap_set_default and jemalloc's thread.arena.
 *
 * True, and *before, unless `before` is NULL, becomes the heap that was in use until now, NULL for
 * the thread's own; so uses nest:
 *
 *   hak_heap *before;
 *   if (hak_heap_use(tenant, &before)) {
 *     serve(request);
 *     hak_heap_use(before, NULL);
 *   }
 *
 * False, and nothing changed: EPERM for another thread's heap; ENOMEM without memory for the
 * thread's own heap, or when the thread is ending.  A heap that was destroyed is reported as a
 * misuse, then EINVAL.
 *
 *  - `free` works as always, on any block by any thread.  `realloc` leaves a block in its heap, so
 *    one from before does not move into this one; `realloc(NULL, n)` is malloc.
 *  - When the heap's limit refuses a block, malloc fails with ENOMEM; operator new calls the new
 *    handler, and throws.
 *  - It holds for this thread alone, until its next call or its end, and for that thread in a
 *    forked child; a thread that it starts begins with its own heap.
 *  - While another thread uses the heap it cannot be destroyed (EBUSY).  hak_heap_free_all does
 *    not end the use.
 *  - All code called meanwhile allocates there, the C library too, which keeps some blocks for as
 *    long as the process lives: buffers of streams that are used for the first time, records of
 *    setenv, setlocale, tzset, atexit and dlopen; so do other libraries (caches, thread_local
 *    objects, C++ exceptions in flight).  Make such calls before, or with NULL in use, if the heap
 *    is to be emptied or destroyed by hak_heap_free_all or hak_heap_destroy, which free these
 *    blocks while they are in use.  The C library's blocks for a thread that is started meanwhile
 *    lie elsewhere with libhakmem.so, in the heap with the archive. */
HAK_EXPORT bool hak_heap_use(hak_heap *heap, hak_heap **before);

/* Frees all blocks of the heap, which must not be used any more.  The time depends on its slabs and
 * on its blocks above 64 KiB, not on the number of its blocks, except in hardened mode and beside a
 * heap profile, where each block is visited.  The heap may be used again.  False and EINVAL for a
 * thread's heap. */
HAK_EXPORT bool hak_heap_free_all(hak_heap *heap);

/* Frees them and the heap itself; if the calling thread used it, malloc gives blocks of the
 * thread's own heap again.  NULL is allowed. False and EBUSY, and nothing done, while another
 * thread uses it (hak_heap_use). */
HAK_EXPORT bool hak_heap_destroy(hak_heap *heap);

/* "major.minor.patch" of the library that is loaded, a constant string. */
HAK_EXPORT const char *hak_version(void);

/* Writes the report that HAKMEM_STATS=1 prints at exit to the file descriptor `fd`.  Allocates
 * nothing. */
HAK_EXPORT void hak_stats_print(int fd);

/* Writes the same figures as one JSON object, NUL-terminated, to `buffer` of `buffer_bytes` bytes.
 * Returns the length the whole text has without its NUL; when that is >= buffer_bytes the text was
 * cut and the call should be repeated with a larger buffer.  `buffer` may be NULL when buffer_bytes
 * is 0. */
HAK_EXPORT size_t hak_stats_json(char *buffer, size_t buffer_bytes);

#ifdef __cplusplus
}
#endif
#endif
