/* lock.h: a small mutex over the kernel's wait queue, and the order in which locks may be taken.
 *
 * Only slow paths use it: the range arenas, the guarded slots and the list of heaps.  It is never held across a system
 * call that maps, unmaps or purges memory.  Word: 0 free, 1 held, 2 held and somebody may be waiting
 * (U. Drepper, "Futexes Are Tricky", 2011, mutex 2). */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/counters.h"
#include "os/os.h"

/* Ranks: a thread that holds a lock may take only locks of lower rank.  Debug builds check.  0 is that
 * of the many, so that they need no page of initial values. */
enum lock_rank { LOCK_RANK_RANGES, LOCK_RANK_GUARD, LOCK_RANK_HEAPS };

struct lock {
  ATOMIC(uint32_t) word;
  uint32_t rank;
};

/* `counters` learns of the acquisition, and of a wait. */
void lock_take(struct lock *lock, struct counters *counters);
void lock_give(struct lock *lock);

/* In a forked child, while it has one thread: as new.  True when a thread that did not come along held it: what it guards
 * may be half changed, and is to be repaired or set aside.  No lock is taken for a fork: other fork handlers and the C
 * library take theirs meanwhile, and whose holders may wait for ours. */
bool lock_reset_in_child(struct lock *lock);

#endif
