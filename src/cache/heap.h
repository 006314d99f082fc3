/* heap.h: a thread's heap: magazines in front, an owner of slabs below.
 *
 * A thread finds its heap through one initial-exec TLS pointer.  Before its first allocation the
 * pointer leads to `empty_heap`, whose magazines are all empty and whose tag matches nothing, so
 * the fast paths need no test for it: every call falls into the slow path, which recognises it.
 *
 * Heaps are never unmapped, only parked when their thread ends and taken over by a new thread. */
#ifndef HAK_CACHE_HEAP_H
#define HAK_CACHE_HEAP_H

#include "cache/magazine.h"
#include "guard/guard_sampler.h"
#include "profile/sampler.h"
#include "slab/owner.h"

/* Slots that a magazine starts with, by class; together, with the word below the first,
 * INITIAL_SLOTS_MAX. */
enum { INITIAL_SLOTS_MAX = 176 };
/* Arrays of magazines that grew, kept for other classes, by log2 of their slots. */
enum { SPARE_ARRAY_KINDS = 12 };

struct quarantine;      /* cache/quarantine.h */
struct range_magazines; /* ranges/range_magazine.h */
struct trace_ring;      /* profile/trace_ring.h */

/* Why a heap's thread leaves the fast path at its next free, 0 if it does not: the highest byte of
 * a tag that then matches nothing (cache/divert.h). A later value replaces an earlier one. Only
 * HEAP_POKE may be written to `poke` from outside.
 *
 *                set by                              answered, and so cleared, by
 *   HEAP_POKE    a tool; divert_all; divert_tick;    sampling_attend, after that free: looks at the
 *                steps that go on (reclaim/)         control record, and for guarded samples
 *   HEAP_CALL    a round: call_if_dormant            reclaim_caches_when_due: empties all magazines
 *                                                    and sets HEAP_POKE
 *   HEAP_WAIT    steps_divert: memory waits          sampling_attend, after a free that finds it is
 *                                                    time (free_into_magazine)
 *   HEAP_TRACE   divert_look: all is recorded;       heap_free_made; push_or_flush; set again
 *                divert_move                         after others, until trace or moving end */
enum attention { HEAP_TRACE = 0xFC, HEAP_WAIT, HEAP_CALL, HEAP_POKE };
enum { HEAP_POKE_SHIFT = 24 };
_Static_assert(MAP_TAG_UNOWNED >> HEAP_POKE_SHIFT == HEAP_POKE,
               "of live entries only a Big block's have this byte, in a tag unlike a thread's");

/* And at each malloc: why the magazines are armed.  divert_look sets and clears the bits for a
 * profile and a trace, divert_use that of a named heap in use, divert_move that of a thread that
 * moves blocks: set before the magazines are armed, cleared after.  malloc_missed answers. */
enum {
  ARMED_BY_PROFILE = 1,
  ARMED_BY_USE = 2,
  ARMED_BY_TRACE = 4,
  ARMED_BY_MOVING = 8,
  ARMED_BY_ANY = 15
};

struct heap {
  /* The fast paths' part: the tag of entries of blocks that its magazines take, MAP_TAG_THREADS.
   * Another thread may make it match nothing for a while (cache/divert.h). */
  union {
    ATOMIC(uint32_t) tag;
    struct {
      uint8_t low_bytes[3];
      uint8_t poke; /* its highest byte: a tool writes HEAP_POKE, for a look at the profile */
    };
  };

  /* Slow paths, in the room before the magazines. */
  uint8_t exit_round;
  ATOMIC(uint8_t) armed; /* ARMED_… bits; 0: no magazine is (cache/divert.h). Read from outside */
  ATOMIC(struct class_counters *) class_counters; /* CLASS_COUNT; NULL until one is needed */
  struct sampler sampler;

  /* The fast paths' part. */
  CACHE_ALIGNED struct magazine magazines[SLAB_CLASS_COUNT];

  /* Slow paths, own thread. */
  ATOMIC(uint32_t) is_busy; /* its thread is in one: a forked child leaves those parts alone */
  uint8_t refilled_class;   /* the slab class whose magazine was refilled last: cache/glance.h */
  uint8_t share_decisions;  /* since share_bytes was asked for; wraps: cache/capacity.c */
  int64_t capacity_bytes;   /* block bytes that all magazines could hold */
  int64_t share_bytes;
  void **spare_arrays[SPARE_ARRAY_KINDS];
  SHOWN(struct range_magazines *, ranges); /* of Large classes; NULL until the first free */
  SHOWN(struct quarantine *, quarantine);  /* in hardened mode; NULL until the first free */
  SHOWN(struct trace_ring *, ring);        /* profile/trace_ring.h; NULL until all is recorded */
  uint64_t next_flush_ms;                  /* when its own idle caches are checked again */
  uint64_t next_scan_ms;     /* when its slabs are scanned for free pages (slab/pages.h) */
  bool has_waiting_pages;    /* that scan left some free pages */
  bool is_moving;            /* its thread moves blocks, now or for one call: cache/moving.h */
  ATOMIC(uint64_t) settled;  /* count of slow paths before which it is not called again */
  ATOMIC(uint32_t) taken_in; /* by the process of this number in a line of forks: parked.c */
  struct heap *next_parked;  /* under the lock of the list of heaps */
  struct hak_heap *named;    /* its record as a named heap (named/named_heap.h), or NULL */
  struct hak_heap *used; /* the heap that malloc takes blocks from (heap/thread.h); NULL: its own */
  struct guard_sampler guard_sampler;

  struct owner owner;

  /* Last: a thread that allocates little touches few of them. */
  void *initial_slots[INITIAL_SLOTS_MAX];
};

INLINE bool heap_is_armed_by(const struct heap *heap, unsigned reasons) {
  return load_relaxed(&heap->armed) & reasons;
}
/* Or is about to be. */
INLINE bool heap_may_be_armed_by(const struct heap *heap, unsigned reasons) {
  return UNLIKELY(heap_is_armed_by(heap, reasons)) || sampler_is_wanted(&heap->sampler);
}

/* relaxed: a value that is seen late is one at the next free. */
INLINE enum attention heap_attention(const struct heap *heap) {
  return (enum attention)(load_relaxed(&heap->tag) >> HEAP_POKE_SHIFT);
}

/* The tag of a heap that is not diverted. */
INLINE uint32_t heap_resting_tag(const struct heap *heap) {
  bool misses = heap_is_armed_by(heap, ARMED_BY_TRACE | ARMED_BY_MOVING);
  return MAP_TAG_THREADS | (misses ? (uint32_t)HEAP_TRACE << HEAP_POKE_SHIFT : 0u);
}
INLINE void heap_set_tag(struct heap *heap) { store_relaxed(&heap->tag, heap_resting_tag(heap)); }

/* The place (map/size_class.h) of a block's class, by its entry in the owner map; PLACES_END or
 * more when no magazine takes it. */
INLINE size_t heap_place_of(const struct heap *heap, uint32_t entry) {
  return xor_load_relaxed(
      entry, &heap->tag); /* relaxed: a divert that is seen late is one at the next free */
}

_Static_assert(sizeof(struct magazine) == PLACES_A_CLASS * 8, "places count words");
INLINE struct magazine *heap_magazine_at(const struct heap *heap, size_t *place) {
  char *base = words_from((char *)(uintptr_t)heap, place);
  return (struct magazine *)(void *)(base + offsetof(struct heap, magazines));
}

/* Pops as malloc's fast path does; false when the magazine is empty, or armed. The place stays as
 * it is. */
INLINE bool heap_pops(const struct heap *heap, size_t *place, void **block) {
  void **top = heap_magazine_at(heap, place)->top;
  if (UNLIKELY((uintptr_t)top <= heap_magazine_at(heap, place)->tagged_base)) return false;
  magazine_set_top(heap_magazine_at(heap, place), top - 1);
  *block = top[-1];
  return true;
}
/* Pushes as free's does; false when the magazine is full, or has that block. */
INLINE bool heap_takes(const struct heap *heap, size_t place, void *block) {
  void **top = heap_magazine_at(heap, &place)->top;
  if (UNLIKELY(top == heap_magazine_at(heap, &place)->end || magazine_may_end_with(top, block)))
    return false;
  magazine_push(heap_magazine_at(heap, &place), top, block);
  return true;
}

extern THREAD_LOCAL struct heap *heap_of_thread;
extern const struct heap empty_heap; /* of a thread that has not allocated yet */
extern const struct heap ended_heap; /* of a thread whose heap has been parked */

INLINE struct heap *heap_of_owner(struct owner *owner) {
  return (struct heap *)(void *)((char *)owner - offsetof(struct heap, owner));
}

/* The law of a heap's caches: magazines obey magazine.h, and their capacities add up to
 * capacity_bytes; they are armed only while the heap says so, as it does while it uses a named
 * heap. Debug builds check it at each end of a slow path. */
bool heap_is_valid(const struct heap *heap);

INLINE bool heap_is_entered(const struct heap *heap) { return load_relaxed(&heap->is_busy); }

/* Around all slow paths that change the heap.  Plain stores: only a forked child reads it. */
INLINE void heap_enter(struct heap *heap) {
  ASSERT(!heap_is_entered(heap) && heap_is_valid(heap));
  store_relaxed(&heap->is_busy, 1);
  keep_store_order();
}
INLINE void heap_leave(struct heap *heap) {
  ASSERT(heap_is_entered(heap) && heap_is_valid(heap));
  keep_store_order();
  store_relaxed(&heap->is_busy, 0);
}

/* Counts events on threads that have no heap; several threads may write. */
extern struct counters stray_counters;

INLINE bool heap_is_real(const struct heap *heap) {
  return heap != &empty_heap && heap != &ended_heap;
}

/* The counters for work done for this heap; NULL and the constant heaps count with the strays. */
INLINE struct counters *heap_counters(struct heap *heap) {
  return heap && heap_is_real(heap) ? &heap->owner.counters : &stray_counters;
}

#endif
