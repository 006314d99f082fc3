/* reclaim.h: gives memory back, and lists the reasons (docs/decisions/0030).
 *
 *   flush     magazines → slabs; shared caches → ranges
 *   release   wholly free slabs → the pool
 *   purge     pages → the system
 *   unmap     addresses → the system
 *
 * Each reason has one row in reclaim.c: the age and amount of memory to give back, and the actions. */
#ifndef HAK_RECLAIM_RECLAIM_H
#define HAK_RECLAIM_RECLAIM_H

#include "cache/heap.h"
#include "pool/purge.h"

enum reclaim_reason {
  RECLAIM_AGE, /* a round is due: memory that is old or too much; by a thread of the program, in steps */
  RECLAIM_QUIET,     /* the same, and no slow path came for a decay time: all free memory is old */
  RECLAIM_BY_HELPER, /* a round is due: by the helper, in one piece */
  RECLAIM_OLD,       /* the program asks to purge old memory */
  RECLAIM_TRIM,      /* the program asks for everything */
  RECLAIM_LIMIT,     /* the memory held exceeds the soft limit */
  RECLAIM_PRESSURE,  /* the system refused memory */
  RECLAIM_OWN_PAGES, /* the thread's own slabs were not scanned for a while */
  RECLAIM_REASONS
};

/* Gives memory back by the reason's row; returns the work done. Any thread, outside of all latches; `heap` is the thread's own, or a
 * constant one. Does nothing while another thread runs a round, unless the row says to wait. */
struct purge reclaim(struct heap *heap, enum reclaim_reason reason);

/* Below the option's value when the cgroup's memory is nearly used up. */
uint64_t reclaim_decay_ms(void);
uint32_t reclaim_page_decay_ms(void);
/* Rounds in one decay time: memory is purged at most a quarter of it late. */
enum { RECLAIM_ROUNDS_PER_DECAY = 4, RECLAIM_MIN_INTERVAL_MS = 10 };
uint64_t reclaim_interval_ms(void);

/* Reads the cgroup before caches fill beyond what it allows; once. */
void reclaim_poll_limits_once(void);

/* Whether a thread runs a round now. */
bool reclaim_is_running(void);

void reclaim_after_fork(void);

#endif
