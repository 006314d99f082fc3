/* lock.h: waiting for another thread, where it cannot be avoided.
 *
 * A word is free (0) or holds the kernel's number of the thread that has it. A thread that finds
 * it taken spins for a moment and then sleeps until it is given back. For a real-time thread the
 * kernel lends the holder its priority (futex(2), FUTEX_LOCK_PI), however many ordinary threads
 * sleep: if it only yielded it would keep a preempted holder off its processor for as long as it
 * may run. The kernel cannot lend it to a child of vfork, which has its parent's number, nor in a
 * confined program, whose filter may not allow that: there a real-time thread sleeps, so that the
 * holder runs once no other thread of higher priority does. A latch (slab/owner.h) is such a word,
 * and so is a lock, which also has a rank and is counted.
 *
 * Only slow paths use locks: the range arenas, the list of heaps, the library's start; and, held
 * across system calls that map, unmap or purge memory, rounds, the maps' reservation and chunks of
 * records. A process with one thread takes no lock. */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/counters.h"
#include "os/os.h"

/* The kernel's number of this thread, cached. A forked child forgets its parent's. */
extern THREAD_LOCAL uint32_t thread_number_if_known;
uint32_t thread_number_ask(void);
INLINE uint32_t thread_number(void) {
  uint32_t known = thread_number_if_known;
  return LIKELY(known) ? known : thread_number_ask();
}
void thread_number_forget(void);

/* The kernel sets a higher bit in a word that has waiters. */
enum { WORD_HOLDER_MASK = 0x3fffffff };

/* `holder` is the thread's number, or another value if no thread ever waits for the word. */
INLINE bool word_try(ATOMIC(uint32_t) *word, uint32_t holder) {
  uint32_t free_word = 0;
  /* acquire: the last holder's stores; pairs with word_give, and latch_give. */
  return load_relaxed(word) == 0 && cas_strong_acq_rel(word, &free_word, holder);
}
/* Waits until this thread holds the word, with its number in it. Every holder must use its thread's
 * number. */
void word_wait(ATOMIC(uint32_t) *word);
/* Gives back a word that holds this thread's number. */
void word_give(ATOMIC(uint32_t) *word);
/* In a forked child that has one thread and has forgotten its number: frees the word, unless this
 * thread holds it (a signal handler that interrupted the holder has forked). True when a thread
 * held it that does not exist in the child. */
bool word_reset_in_child(ATOMIC(uint32_t) *word);

/* Reports that a thread waits for itself, and ends the process. */
COLD NORETURN void report_endless_wait(void);

/* Ranks: a thread that holds a lock may take only locks of lower rank; debug builds check. Rank 0
 * is that of the largest group of locks, so that they need no page of initial values. */
enum lock_rank {
  LOCK_RANK_RANGES,
  LOCK_RANK_NAMED,
  LOCK_RANK_HEAPS,
  LOCK_RANK_LOST,
  LOCK_RANK_ROUND,
  LOCK_RANK_START
};

struct lock {
  ATOMIC(uint32_t) word;
  uint32_t rank;
};

/* Counts the acquisition, and a wait, in `counters`. */
void lock_take(struct lock *lock, struct counters *counters);
/* False when another thread holds it; not counted. */
bool lock_try(struct lock *lock);
void lock_give(struct lock *lock);

/* In a forked child that has one thread and has forgotten its number: makes the lock as new. True
 * when a thread held it that does not exist in the child: the guarded data may be half changed, and
 * must be repaired or set aside. If this thread holds it (a signal handler that interrupted the
 * holder has forked), it stays held. Fork takes no locks: other fork handlers and the C library
 * take theirs meanwhile, whose holders may wait for ours. */
bool lock_reset_in_child(struct lock *lock);

/* ---- biased locks ---------------------------------------------------------------------------- */

/* A lock that one thread, its owner, takes with plain stores; no thread waits for it.
 *
 *   owner   is_used = 1                 another   is_closed = its number
 *           is_closed? give it back               every thread passes a barrier
 *           …                                     is_used? leave it; else …
 *           is_used = 0                           is_closed = 0
 *
 * Where there is no such barrier the owner pays for one at each use.  Law: it has one holder at
 * most, as debug builds check. */
struct biased {
  ATOMIC(uint32_t) is_used;   /* its owner holds it, or tries to */
  ATOMIC(uint32_t) is_closed; /* by another thread that holds it, or tries to: its number */
  bool is_held;               /* by that thread */
};

/* Whether every other thread can be made to pass a barrier. Relaxed: read anew each time. */
extern ATOMIC(bool) biased_have_barrier;
/* Makes the barrier ready, before the second thread: then without waiting for others. Where it is
 * refused owners do without from now on, those that may hold a lock (`may_hold`) a little later. */
bool biased_share(bool may_hold);

/* By the owner; false while it is closed. */
INLINE bool biased_take(struct biased *lock) {
  store_relaxed(&lock->is_used, 1);
  keep_store_order(); /* the barrier of the thread that closes it is the rest */
  /* After the store: a thread stopped in between has been switched since, which is a barrier,
   * too. */
  if (UNLIKELY(!load_relaxed(&biased_have_barrier)))
    exchange_seq(&lock->is_used, 1); /* before is_closed is read; pairs with biased_is_left */
  /* seq: after is_used was written.  acquire: the last holder's changes; pairs with biased_open. */
  bool is_open = LIKELY(!load_seq(&lock->is_closed));
  ASSERT(!is_open || !lock->is_held);
  if (!is_open) store_release(&lock->is_used, 0);
  return is_open;
}
INLINE void biased_give(struct biased *lock) {
  ASSERT(!lock->is_held);
  store_release(&lock->is_used, 0); /* the changes; pairs with biased_is_left */
}

/* By another thread, in this order: biased_close, false if a third one has closed it; then, for all
 * that it has closed, biased_are_closed: whether their owners know; for each biased_is_left:
 * whether it holds it now; and biased_open, in any case. */
INLINE bool biased_close(struct biased *lock) {
  uint32_t open = 0, self = thread_number();
  /* seq: before is_used is read; pairs with biased_take. It may be closed by this very thread: that
   * was a child of vfork, and was killed. */
  return cas_strong_seq(&lock->is_closed, &open, self) || open == self;
}
bool biased_are_closed(void);
INLINE bool biased_is_left(struct biased *lock) {
  /* seq: after is_closed was written. acquire: its owner's changes. */
  if (load_seq(&lock->is_used)) return false;
  return lock->is_held = true;
}
INLINE void biased_open(struct biased *lock) {
  if (lock->is_held) lock->is_held = false;
  store_release(&lock->is_closed, 0); /* the changes; pairs with biased_take */
}

/* In a forked child, while it has one thread; true when a thread was at it. */
INLINE bool biased_reset_in_child(struct biased *lock) {
  if (!load_relaxed(&lock->is_used) && !load_relaxed(&lock->is_closed)) return false;
  store_relaxed(&lock->is_used, 0);
  biased_open(lock);
  return true;
}

#endif
