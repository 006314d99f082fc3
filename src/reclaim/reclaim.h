/* reclaim.h: gives memory back, and lists the reasons (docs/decisions/0030).
 *
 *   flush     magazines → slabs; shared caches → ranges
 *   release   wholly free slabs → the pool
 *   purge     pages → the system
 *   unmap     addresses → the system
 *
 * Each reason has one row in reclaim.c: the age and amount of memory to give back. */
#ifndef HAK_RECLAIM_RECLAIM_H
#define HAK_RECLAIM_RECLAIM_H

#include "cache/heap.h"
#include "map/window.h"
#include "reclaim/allowance.h"

enum reclaim_reason {
  RECLAIM_TICK, /* a slow path finds a round due: a step; memory that is old or too much goes */
  RECLAIM_TICK_OF_ALL, /* the same, and all goes: above the soft limit, or after a decay time without a slow path */
  RECLAIM_ROUND,    /* the helper finds it due, or the program asks for it */
  RECLAIM_ALL,      /* the program asks for all free memory */
  RECLAIM_PRESSURE, /* the system refused memory */
  RECLAIM_REASONS
};

/* Gives memory back by the reason's row; returns the work done. Any thread, outside of all latches;
 * `heap` is its own, or constant. A guest gives back nothing but its own caches, where the reason
 * asks for all. */
struct purge reclaim(struct heap *heap, enum reclaim_reason reason);
/* The thread's caches and wholly free slabs; a step of old pages of its slabs in use. */
void reclaim_own_caches(struct heap *heap);
struct purge reclaim_own_pages(struct heap *heap);

/* Below the option's value when the cgroup's memory is nearly used up. */
uint64_t reclaim_decay_ms(void);
uint32_t reclaim_page_decay_ms(void);
/* Rounds in one decay time: memory is purged at most a quarter of it late. */
enum { RECLAIM_ROUNDS_PER_DECAY = 4 };
uint64_t reclaim_interval_ms(void);

INLINE bool reclaim_is_small(void) {
  return load_relaxed(&window.frontier_chunk) < ALLOWANCE_MUCH_BYTES >> CHUNK_SHIFT;
}

/* Reads the cgroup before caches fill beyond what it allows; once. */
void reclaim_poll_limits_once(void);

/* Whether rounds are for this thread to run: a guest (os_is_guest) leaves them to the process. A
 * system call, asked before a thread takes on what others then do not do. */
bool reclaim_is_ours(void);

/* Whether a thread runs a round now. */
bool reclaim_is_running(void);

void reclaim_after_fork(void);

#endif
