/* lock.h: waiting for another thread, where it cannot be avoided.
 *
 * A word is free (0) or holds the number of the kernel's thread that has it.  A thread that finds it taken spins for a moment and then
 * waits in the kernel, which lends the holder the priority of the waiter (futex(2), FUTEX_LOCK_PI): a real-time thread
 * that only yielded would keep a preempted holder from its processor for as long as it is allowed to run.  A latch
 * (slab/owner.h) is such a word, and so is a lock, which has a rank and is counted.
 *
 * Only slow paths use locks: the range arenas, the guarded slots, the list of heaps, rounds, the library's start.  But for a
 * round's none is held across a system call that maps, unmaps or purges memory.  A process with one thread takes nothing. */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/counters.h"
#include "os/os.h"

/* The kernel's number of this thread, asked for once.  A forked child forgets its parent's. */
extern THREAD_LOCAL uint32_t thread_number_if_known;
uint32_t thread_number_ask(void);
INLINE uint32_t thread_number(void) {
  uint32_t known = thread_number_if_known;
  return LIKELY(known) ? known : thread_number_ask();
}
void thread_number_forget(void);

/* The kernel marks a word for which somebody waits by a higher bit. */
enum { WORD_HOLDER_MASK = 0x3fffffff };

/* `holder` is the thread's number, or what nobody waits for. */
INLINE bool word_try(ATOMIC(uint32_t) *word, uint32_t holder) {
  uint32_t free_word = 0;
  /* acquire: what the last holder wrote; pairs with word_give, and latch_give. */
  return load_relaxed(word) == 0 && cas_strong_acq_rel(word, &free_word, holder);
}
/* Until it is ours; it has our number then.  Only while its holder is a thread's number. */
void word_wait(ATOMIC(uint32_t) *word);
/* What holds our number. */
void word_give(ATOMIC(uint32_t) *word);
/* In a forked child, while it has one thread, which has forgotten its number: free, unless this thread holds it, as a signal
 * handler that interrupted it there has forked.  True when a thread held it that did not come along. */
bool word_reset_in_child(ATOMIC(uint32_t) *word);

/* A thread waits for itself: says so, and ends the process (report/report.c).  Not in programs that have this layer alone. */
NORETURN void report_endless_wait(void) WEAK;

/* Ranks: a thread that holds a lock may take only locks of lower rank.  Debug builds check.  0 is that
 * of the many, so that they need no page of initial values. */
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

/* `counters` learns of the acquisition, and of a wait. */
void lock_take(struct lock *lock, struct counters *counters);
/* False when somebody holds it; not counted. */
bool lock_try(struct lock *lock);
void lock_give(struct lock *lock);

/* In a forked child, while it has one thread, which has forgotten its number: as new.  True when a thread that did not come along
 * held it: what it guards may be half changed, and is to be repaired or set aside.  What this thread holds, as a signal handler
 * that interrupted it there has forked, stays its own.  No lock is taken for a fork: other fork handlers and the C
 * library take theirs meanwhile, whose holders may wait for ours. */
bool lock_reset_in_child(struct lock *lock);

#endif
