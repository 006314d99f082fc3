/* named_heap.h: heaps that the program makes (hak_heap_new), and names that it gives to threads'
 * heaps.
 *
 *   heap     owner of its slabs; list of its ranges; figures
 *   record   `struct hak_heap`, used again for another heap when this one has been destroyed.
 *            64 are neighbours; where none of them is used, their pages are purged by age, and
 *            late readers find NAMED_UNUSED, which is 0
 *
 *   lane     a heap of its own for the blocks of slab classes that some threads take: made when
 *            threads have met at the heap's latch.  Its figures are the heap's, and its blocks
 *            are freed with the heap's.  A heap whose whole state must be checked has none: with
 *            a limit, in hardened mode
 *
 * The entries in the owner map have a tag from MAP_TAG_NAMED on with the heap's number, so that no
 * fast path takes its blocks for a thread's, and slow paths find the heap by a compare that they
 * make anyway.  Any thread allocates and frees, under the latch of the heap's owner; a thread that
 * frees while another holds that frees remotely.  The owner is in no list, so that no thread adopts
 * or borrows from it: its slabs hold blocks of this heap only.
 *
 * A record of a thread's heap is only a name: its blocks are like all others. */
#ifndef HAK_NAMED_NAMED_HEAP_H
#define HAK_NAMED_NAMED_HEAP_H

#include "foreign/pointer.h"
#include "purge/purge.h"
#include "slab/owner.h"

enum named_state {
  NAMED_UNUSED,     /* destroyed, or not made yet */
  NAMED_OF_THREAD,  /* a thread's heap with a name */
  NAMED_CUT_OFF,    /* in a forked child: another thread was changing it; `successor` serves */
  NAMED_IN_USE,     /* made by the program */
  NAMED_OF_SAMPLES, /* a heap profile's (named_samples.h) */
  NAMED_LANE,       /* a lane of the heap in `stands_for` */
};

enum { HEAP_NAME_BYTES = 32, NAMED_LANES = 16 };

/* Closed: it has no users and gets none any more. */
#define NAMED_CLOSED UINT32_MAX

struct heap; /* cache/heap.h */

struct hak_heap {
  struct owner owner; /* its number is the record's */

  /* Under the owner's latch. */
  uint32_t first_range; /* its first granule; NO_RANGE: none. Linked through range_record.h */

  /* Written under the latch, except where a comment differs; read by any thread. */
  ATOMIC(uint64_t) allocated_blocks; /* since it was made */
  ATOMIC(uint64_t) freed_remotely;   /* blocks, without the latch */
  ATOMIC(uint64_t) freed_blocks;     /* all other frees */
  ATOMIC(uint64_t) range_bytes;      /* live */
  ATOMIC(uint64_t) range_blocks;
  ATOMIC(uint64_t) peak_bytes;
  ATOMIC(uint64_t) limit_bytes; /* without the latch; 0: none */
  ATOMIC(uint64_t) refusals;    /* requests refused by the limit; without the latch */

  ATOMIC(uint32_t) state; /* enum named_state */
  ATOMIC(uint32_t) users; /* threads whose malloc takes its blocks; NAMED_CLOSED */
  ATOMIC(uint64_t) tag;   /* the program's */
  uint64_t serial;        /* of the record's present heap, unique; for readers */
  char name[HEAP_NAME_BYTES];
  ATOMIC(struct heap *) thread_heap;   /* of NAMED_OF_THREAD */
  ATOMIC(struct hak_heap *) successor; /* of NAMED_CUT_OFF; NULL until it is needed */
  struct hak_heap *stands_for;         /* the heap that a successor or a lane belongs to */
  /* By the number of the allocating thread; NULL: the heap itself. */
  ATOMIC(struct hak_heap *) lanes[NAMED_LANES];
};

/* Records by number. */
enum { NAMED_ROW_GROUPS = 8, NAMED_ROW_HEAPS = NAMED_ROW_GROUPS * 64 };
enum { NAMED_ROWS = 512, NAMED_NUMBERS = NAMED_ROW_HEAPS * NAMED_ROWS };
struct named_row {
  ATOMIC(uint64_t) in_use[NAMED_ROW_GROUPS]; /* bit per record */
  ATOMIC(struct hak_heap *) heaps[NAMED_ROW_HEAPS];
  struct named_group { /* under the lock: 64 neighbouring records */
    uint32_t purged_bytes, free_since_ms;
    bool is_kept; /* they are not purged */
  } groups[NAMED_ROW_GROUPS];
};
extern ATOMIC(struct named_row *) named_rows[NAMED_ROWS];

/* The next record in use after *number, which it advances from 0; NULL after the last. */
struct hak_heap *named_next(uint32_t *number);
/* Purges pages of unused records, under the lock of rounds. */
void named_purge(struct purge *purge);

INLINE struct hak_heap *named_of_owner(struct owner *owner) {
  return (struct hak_heap *)(void *)((char *)owner - offsetof(struct hak_heap, owner));
}
INLINE struct hak_heap *named_of_live_entry(uint32_t entry) {
  uint32_t number = (entry - MAP_TAG_NAMED) >> MAP_TAG_SHIFT;
  /* acquire, both: the row, and the record; pairs with row_of and make_records. */
  const struct named_row *row = load_acquire(&named_rows[number / NAMED_ROW_HEAPS]);
  return load_acquire(&row->heaps[number % NAMED_ROW_HEAPS]);
}
/* The heap of a block, by its entry in the owner map; NULL when it is not one that the program has
 * made. */
INLINE struct hak_heap *named_of_entry(uint32_t entry) {
  struct hak_heap *heap = map_entry_is_named(entry) ? named_of_live_entry(entry) : NULL;
  return heap && heap->owner.name ? heap : NULL;
}
INLINE struct hak_heap *named_of_block(const void *block) {
  return named_of_entry(owner_map_entry((uintptr_t)block));
}
/* As pointer_describe, with the name of the block's heap. */
INLINE struct block_description named_describe(uintptr_t block, uint32_t entry,
                                               size_t block_bytes) {
  struct block_description description = pointer_describe(block, entry, block_bytes);
  const struct hak_heap *heap = named_of_entry(entry);
  if (heap) description.heap_name = heap->owner.name;
  return description;
}

/* Makes a record in that state; NULL without memory. `name` may be NULL: "heap N". */
struct hak_heap *named_make(enum named_state state, const char *name);
/* Gives a record back when its blocks are freed, or when it was a thread's. */
void named_drop(struct hak_heap *heap);
void named_set_name(struct hak_heap *heap, const char *name);

INLINE bool named_is(const struct hak_heap *heap, enum named_state state) {
  return load_acquire(&heap->state) == state; /* the record's fields; pairs with named_make */
}

/* A heap or a lane: its slabs change hands, and its blocks are freed under its latch. */
INLINE bool named_serves(const struct hak_heap *heap) {
  return load_acquire(&heap->state) >= NAMED_IN_USE; /* its fields; pairs with named_make */
}

/* The heap itself, that of a lane, or in a forked child the successor; NULL without memory. */
COLD struct hak_heap *named_successor(struct hak_heap *heap);
INLINE struct hak_heap *named_resolve(struct hak_heap *heap) {
  return LIKELY(named_is(heap, NAMED_IN_USE)) ? heap : named_successor(heap);
}

/* The heap, then each lane, as *at is advanced from 0; NULL after the last. */
INLINE struct hak_heap *named_next_part(const struct hak_heap *heap, unsigned *at) {
  if (!(*at)++) return (struct hak_heap *)(uintptr_t)heap;
  for (; *at <= NAMED_LANES + 1; ++*at) {
    struct hak_heap *lane =
        load_acquire(&heap->lanes[*at - 2]); /* its fields; pairs with make_lane */
    if (lane) return lane;
  }
  return NULL;
}

/* Live bytes, with those of blocks that were freed remotely and not collected yet. */
INLINE uint64_t named_part_bytes(const struct hak_heap *part) {
  return (uint64_t)load_relaxed(&part->owner.bytes_out) + load_relaxed(&part->range_bytes);
}
uint64_t named_live_bytes(const struct hak_heap *heap);

/* Around all changes: waits for the thread that holds the latch. */
INLINE void named_enter(struct hak_heap *heap) {
  if (UNLIKELY(!latch_try(&heap->owner))) word_wait(&heap->owner.latch);
  owner_note_work(&heap->owner);
}
INLINE void named_leave(struct hak_heap *heap) { latch_give(&heap->owner); }

/* Enters the part that the calling thread takes blocks of slabs from, in a program with threads. */
struct hak_heap *named_enter_busy(struct hak_heap *heap, struct hak_heap *part);
INLINE struct hak_heap *named_enter_part(struct hak_heap *heap) {
  uint32_t self = thread_number();
  /* acquire: its fields; pairs with make_lane. */
  struct hak_heap *part = load_acquire(&heap->lanes[self % NAMED_LANES]);
  if (LIKELY(!part)) part = heap;
  return LIKELY(word_try(&part->owner.latch, self)) ? part : named_enter_busy(heap, part);
}

/* named_leave for programs with threads, inlined. */
INLINE void named_leave_quickly(struct hak_heap *heap) {
  uint32_t self = thread_number();
  ASSERT(owner_is_valid(&heap->owner));
  /* release: as word_give, which wakes waiting threads; pairs with word_try. */
  if (UNLIKELY(!cas_strong_acq_rel(&heap->owner.latch, &self, LATCH_FREE)))
    word_give(&heap->owner.latch);
}

/* The heap itself while the process has one thread, which needs no lane. */
INLINE struct hak_heap *named_enter_any(struct hak_heap *heap) {
  if (os_is_multi_threaded()) return named_enter_part(heap);
  named_enter(heap);
  return heap;
}

/* Collects remote frees of the heap and its lanes. Takes the latches, one after the other. */
void named_collect(struct hak_heap *heap);

/* Whether the limit allows `bytes` more, after all frees are collected; under the latch. */
bool named_limit_allows(struct hak_heap *heap, uint64_t limit, size_t bytes);
INLINE bool named_allows(struct hak_heap *heap, size_t bytes) {
  uint64_t limit = load_relaxed(&heap->limit_bytes);
  return LIKELY(!limit) || named_limit_allows(heap, limit, bytes);
}
/* Notes that a block has grown, or that one of `bytes` (0: counted already) is taken: under the
 * latch. */
INLINE void named_note_grown(struct hak_heap *heap, size_t bytes) {
  uint64_t live = named_part_bytes(heap) + bytes;
  if (UNLIKELY(live > load_relaxed(&heap->peak_bytes))) store_relaxed(&heap->peak_bytes, live);
}
INLINE void named_note_taking(struct hak_heap *heap, size_t bytes) {
  add_single_writer(&heap->allocated_blocks, 1);
  named_note_grown(heap, bytes);
}

/* Called when the part has got a slab: its peak becomes the whole heap's, if that is more.  Swings
 * of lanes between two slabs are not seen. */
void named_note_total(const struct hak_heap *heap, struct hak_heap *part);

/* A thread's malloc takes the heap's blocks from now on (heap/thread.h); false when it is closed. */
bool named_join(struct hak_heap *heap);
/* Ends that. */
void named_part(struct hak_heap *heap);
/* Closes a heap that has `users` users, which are no longer counted; false, and nothing done, when
 * the number differs. */
bool named_close(struct hak_heap *heap, uint32_t users);

/* In a forked child, while it has one thread, whose malloc takes blocks of `used`, or NULL. */
void named_after_fork(const struct hak_heap *used);

#endif
