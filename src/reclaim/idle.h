/* idle.h: how much memory may be resident and free, whatever its age (docs/decisions/0030).
 *
 *   allowed(age) = young · falling(age / decay time) + debt · falling(age / two decay times)
 *
 * Free memory of an age goes while more than that is free. `young` follows the live bytes and
 * the limits; a program with one thread and no helper may sleep at any time, or hit its
 * magazines only, so that no round runs later: there it is less the credit that processor time
 * has earned. The debt is memory that was taken again after it had gone (purge/purge_credit.h).
 * purge.h has the curve. */
#ifndef HAK_RECLAIM_IDLE_H
#define HAK_RECLAIM_IDLE_H

#include "cache/heap.h"
#include "purge/purge.h"

/* Owners that a slow path visits: some cache lines of each, which other threads write. */
enum { IDLE_OWNERS_MAX = 16 };

/* A part that is small beside the whole: of free memory, what is live; of a limit, what the process
 * has grown by. */
enum { IDLE_SMALL_DIVISOR = 32 };

/* Bytes that are much: a process that takes fewer gains too little from a helper, or from its
 * cgroup's limits, to pay for them; and at least that much goes early of what is free beside half
 * of the live bytes. */
#define IDLE_MUCH_BYTES ((uint64_t)16 << 20)

/* Before a round: how much is free, and how much may be. */
void idle_measure(struct purge *purge);
/* After a step: bytes that could not go do not start another. */
void idle_note_step(const struct purge *purge);
/* After a round by age: nor do bytes that are free when it found nothing left, in pages that went
 * or are in use. */
void idle_note_round(const struct purge *purge);

/* At the end of slow paths, of a program that may sleep: if more is free than may be at any age,
 * the next free begins steps; if much is free that is not old, its frees look at the clock, as no
 * slow path comes where all requests hit magazines. */
void idle_look(struct heap *heap, uint64_t now_ms);
/* For a free that was diverted so: whether nothing else is to be done. */
bool idle_passes(uint64_t now_ms);
/* Whether steps have begun. */
bool idle_is_given(void);
/* Called before a free pushes its block, which is to stay the youngest: whether caches are to be
 * flushed, as steps begin. */
bool idle_begins(void);
/* After that flush, inside the heap: few blocks stay in them at the end. */
void idle_shrink_magazines(struct heap *heap);

#endif
