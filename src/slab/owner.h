/* owner.h: a heap as its slabs see it, and who may touch what.
 *
 * A slab is owned by one heap. Everything of an owner below "under the latch" may be touched only
 * by the thread that holds its latch, a word of os/lock.h: its own thread takes it once per slow
 * path (a plain check while the process has one thread), and others may take it only when they find
 * it free: to adopt slabs of an owner that ended or idles, to sweep, to park. A thread never waits
 * for two latches, so they need no order. Magazines are not under the latch: they belong to the
 * running thread.
 *
 * Remote frees need no latch: they set bits in `remote` and queue the slab here.
 *
 *   pending[class]    slabs with remote frees, a stack with many producers; popped whole by
 *                     exchange, by the latch's holder
 *   ready_mask        bit per class: pending[class] may be non-empty
 *
 * Law of `queued` in a slab: a thread that changes it 0 -> 1 holds the right to queue the slab or
 * to release it, until it is set to 0 again; a slab in a pending queue has queued == 1. */
#ifndef HAK_SLAB_OWNER_H
#define HAK_SLAB_OWNER_H

#include "base/counters.h"
#include "os/lock.h"
#include "slab/record.h"

_Static_assert(SLAB_CLASS_COUNT <= 64, "ready_mask and orphan_mask have a bit for each");

enum owner_state {
  OWNER_RUNNING, /* a thread allocates with it */
  OWNER_DORMANT, /* its thread has not been in a slow path for a decay time */
  OWNER_PARKED,  /* its thread ended */
  OWNER_LOST,    /* in a forked child: its thread was cut off inside a slow path */
};

/* The slabs of one class. */
struct bin {
  SHOWN(struct slab *, current); /* serves refills; not listed */
  struct slab *partial; /* others with free blocks: last freed into first, wholly free ones last */
  struct slab *taken;   /* popped off the pending queue, not scanned yet */
  uint32_t partial_count;
  uint32_t free_count; /* wholly free ones: kept against releasing and acquiring in turns */
  /* Slabs of the class that the owner owns: single writer; its thread reads it without the
   * latch. */
  ATOMIC(uint32_t) slab_count;
  ATOMIC(bool) has_served; /* blocks were taken since the last relief */
  uint8_t lead;            /* by the owning thread, without the latch: cache/fitted.h */
  uint16_t candidate;
};

struct owner {
  /* Constant, or nearly so: threads that look for slabs read this line of every owner. */
  uint32_t tag; /* its ranges' entries in the owner map, without their class */
  uint32_t number;
  struct owner *next_of_all; /* list of all owners, never unlinked */
  ATOMIC(uint32_t) state;    /* enum owner_state; changed under the latch */

  ATOMIC(uint32_t) thread_id; /* kernel's number of the heap's thread; 0: none, or the first */
  const char *name;           /* of a named heap; else NULL */
  struct slab
      *owned; /* a named heap's slabs, linked both ways, also the full ones; under the latch */

  /* Under the latch, which lies with what each slow path writes. */
  CACHE_ALIGNED struct bin bins[SLAB_CLASS_COUNT];
  CACHE_ALIGNED ATOMIC(uint32_t) latch; /* enum latch */
  /* Where the next scan for free pages begins (slab/pages.h): NULL for the start of the class's
   * list. */
  uint32_t page_class;
  struct slab *page_cursor;
  ATOMIC(uint64_t) slow_paths; /* written under the latch, read to check for idleness */
  ATOMIC(int64_t) bytes_out;   /* in blocks taken and not returned: live or in magazines */
  uint32_t free_age_ms; /* assumed of free memory that a sweep finds: its owner idled for that */
  struct counters counters;

  /* Written by any thread, but rarely: threads that look for blocks read this line of every
   * owner. */
  CACHE_ALIGNED ATOMIC(uint64_t) ready_mask;
  ATOMIC(uint64_t) spare_mask; /* bit per class: the partial list may have used blocks */
  CACHE_ALIGNED ATOMIC(struct slab *) pending[SLAB_CLASS_COUNT];
  ATOMIC(uint64_t) seen_slow_paths; /* an observer's last reading, and its time */
  ATOMIC(uint64_t) seen_ns;
};

/* Else the kernel's number of the thread that adopts, borrows or sweeps: the owner's own may have
 * to wait for it. */
enum latch {
  LATCH_FREE,
  LATCH_FORKING = 0x3ffffffe,  /* held by the owner's thread, around a fork */
  LATCH_OWN = WORD_HOLDER_MASK /* held by the owner's thread: all others only try */
};

/* Whether it is a named heap's (named/named_heap.h): all blocks of its slabs must be its own, so it
 * adopts none. */
INLINE bool owner_is_named(const struct owner *owner) { return map_entry_is_named(owner->tag); }
INLINE bool owner_is_hardened(const struct owner *owner) { return owner->tag & MAP_HARDENED; }
/* Only a named heap must find its full slabs: all its blocks can be freed at once. */
void owner_link_slab(struct owner *owner, struct slab *slab);
void owner_unlink_slab(struct owner *owner, struct slab *slab);

/* The slab got this owner, or lost it. */
INLINE void owner_gains_slab(struct owner *owner, struct slab *slab) {
  add_single_writer(&owner->bins[slab->class].slab_count, 1);
  if (UNLIKELY(owner_is_named(owner))) owner_link_slab(owner, slab);
}
INLINE void owner_loses_slab(struct owner *owner, struct slab *slab) {
  ATOMIC(uint32_t) *count = &owner->bins[slab->class].slab_count;
  store_relaxed(count, load_relaxed(count) - 1);
  if (UNLIKELY(owner_is_named(owner))) owner_unlink_slab(owner, slab);
}

/* Its slabs' entries in the owner map, without their class. */
INLINE uint32_t owner_slab_tag(const struct owner *owner) {
  return owner_is_named(owner) || owner_is_hardened(owner) ? owner->tag : MAP_TAG_THREADS;
}

/* For all other threads: to adopt, to borrow, to sweep. */
INLINE bool latch_try(struct owner *owner) {
  return !os_is_multi_threaded() || word_try(&owner->latch, thread_number());
}

/* Whether the guarded data is as the latch's holder may leave it: the lists' links and sums, and
 * the first slabs of each. */
bool owner_is_valid(const struct owner *owner);
INLINE bool latch_is_held(const struct owner *owner) {
  return !os_is_multi_threaded() || load_relaxed(&owner->latch) != LATCH_FREE;
}

/* Waits for a thread that sweeps or adopts; in real time the kernel lends them its priority. */
void latch_wait(struct owner *owner);

/* Only for the owner's own thread (and for a thread that is about to become it). */
INLINE void latch_take(struct owner *owner) {
  if (os_is_multi_threaded() && UNLIKELY(!word_try(&owner->latch, LATCH_OWN))) latch_wait(owner);
  ASSERT(owner_is_valid(owner));
}

/* Called by the latch's holder before it takes or gives blocks. */
INLINE void owner_note_work(struct owner *owner) {
  ASSERT(latch_is_held(owner));
  add_single_writer(&owner->slow_paths, 1);
  if (UNLIKELY(load_relaxed(&owner->state) == OWNER_DORMANT))
    store_relaxed(&owner->state, OWNER_RUNNING); /* relaxed: under the latch, as all changes */
}

/* Under the latch; others read the mask as a hint. */
INLINE void owner_set_spare(struct owner *owner, unsigned class, bool has_some) {
  uint64_t bit = UINT64_C(1) << class, before = load_relaxed(&owner->spare_mask);
  uint64_t after = has_some ? before | bit : before & ~bit;
  if (UNLIKELY(after != before)) store_relaxed(&owner->spare_mask, after);
}

/* By the owner's own thread, around taking and giving blocks; latch_give ends it. */
INLINE void owner_begin_work(struct owner *owner) {
  latch_take(owner);
  owner_note_work(owner);
}

/* In a process with one thread it was not taken. */
INLINE void latch_give(struct owner *owner) {
  ASSERT(latch_is_held(owner) && owner_is_valid(owner));
  uint32_t holder = load_relaxed(&owner->latch);
  if (LIKELY(holder == LATCH_OWN))
    store_release(&owner->latch, LATCH_FREE); /* pairs with word_try */
  else if (holder != LATCH_FREE && holder != LATCH_FORKING)
    word_give(&owner->latch);
}

/* Around fork: no other thread may adopt from the forking thread's owner meanwhile, or the child
 * would find it half changed and its latch held until it ends; the thread itself may go on
 * allocating. A signal handler may have interrupted it while it held its latch: then that stays
 * held, here and in the child, where the thread goes on. */
INLINE void latch_fork_begin(struct owner *owner) {
  if (load_relaxed(&owner->latch) == LATCH_OWN) return;
  latch_take(owner);
  store_relaxed(&owner->latch, LATCH_FORKING);
}
INLINE void latch_fork_end(struct owner *owner) {
  /* release: pairs with word_try, as latch_give. */
  if (load_relaxed(&owner->latch) == LATCH_FORKING) store_release(&owner->latch, LATCH_FREE);
}

extern ATOMIC(struct owner *) all_owners;
/* The head of the list of all owners; pairs with the release in owner_register. */
INLINE struct owner *owners_first(void) { return load_acquire(&all_owners); }
void owner_register(struct owner *owner);
/* The next one in the list of all owners, in a circle: each scan begins at another one, so that not
 * all scan the same few. */
INLINE struct owner *owner_after(const struct owner *owner) {
  return owner->next_of_all ? owner->next_of_all : owners_first();
}
/* The kernel's number of the owner's thread; 0 when it ended, or without an owner. */
uint32_t owner_thread_id(const struct owner *owner);
/* The owner of a tag, with any bits of a class; NULL if none. */
struct owner *owner_of_tag(uint32_t tag);

/* Classes in which an ended or dormant owner may have free blocks: a hint for the supply ladder. */
extern ATOMIC(uint64_t) orphan_mask;

INLINE void orphan_mask_add(uint64_t classes) {
  /* seq: a thread that finds the bit sees the earlier offers; pairs with adopt_next, which clears
   * it before it scans. */
  if (~load_seq(&orphan_mask) & classes) fetch_or_seq(&orphan_mask, classes);
}

#endif
