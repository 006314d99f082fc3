/* reclaim.h: memory goes back, and why (docs/decisions/0030).
 *
 *   flush     magazines and remote-free buffers → slabs; shared caches → ranges
 *   release   wholly free slabs → the pool
 *   purge     pages → the system
 *   unmap     addresses → the system
 *
 * Each reason has one row in reclaim.c: how old what goes must be, how much may go, and which of these is done. */
#ifndef HAK_RECLAIM_RECLAIM_H
#define HAK_RECLAIM_RECLAIM_H

#include "cache/heap.h"
#include "pool/purge.h"

enum reclaim_reason {
  RECLAIM_AGE, /* a round is due: what nobody wanted for a decay time; by a thread of the program, in steps */
  RECLAIM_QUIET, /* the same, and nobody was in a slow path for a decay time: all that is free is old */
  RECLAIM_BY_HELPER, /* a round is due: by the helper, in one piece */
  RECLAIM_OLD,       /* the program asks for what is old */
  RECLAIM_TRIM,      /* the program asks for everything */
  RECLAIM_LIMIT,     /* more is held than the soft limit says */
  RECLAIM_PRESSURE,  /* the system refused memory */
  RECLAIM_RANGES,    /* more freed ranges than their budget */
  RECLAIM_EXCESS, /* much more is held than the program has, and nobody comes later (reclaim/excess.h) */
  RECLAIM_EXCESS_OWN,   /* the same, of what the thread's own caches and bins keep */
  RECLAIM_EXCESS_PAGES, /* the same, of slabs in use */
  RECLAIM_OWN_PAGES,    /* the thread's own slabs were not scanned for a while */
  RECLAIM_REASONS
};

/* Gives back what the reason's row says; what was done of it.  Any thread, outside of all latches; `heap` is the thread's
 * own, or a constant one.  Nothing is done while another thread is at it, unless the row says to wait. */
struct purge reclaim(struct heap *heap, enum reclaim_reason reason);

/* Less than the option says when the cgroup's memory is nearly used up; more while what went back is wanted again
 * (reclaim/regret.h). */
uint64_t reclaim_decay_ms(void);
uint32_t reclaim_page_decay_ms(void);
/* Rounds in one decay time: memory goes at most a quarter later than it could. */
enum { RECLAIM_ROUNDS_PER_DECAY = 4, RECLAIM_MIN_INTERVAL_MS = 10 };
uint64_t reclaim_interval_ms(void);

/* Reads the cgroup before caches fill beyond what it allows; once. */
void reclaim_poll_limits_once(void);

/* Whether a thread is at a round now. */
bool reclaim_is_running(void);

void reclaim_after_fork(void);

#endif
