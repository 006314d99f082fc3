/* excess.h: a program with one thread that holds much more than it has.
 *
 * Nobody comes when what it has freed is a decay time old: it may sleep, or find all it wants in its magazines.  So what is more
 * than the budget of free memory (HAKMEM_BIG_CACHE_BYTES) goes at once, and again each time that it has freed a quarter of the
 * rest: whole slabs and ranges, a step in each slow path; where next to nothing is live the free pages of slabs in use, too.
 * Less goes when next to nothing is live and it has stopped freeing, without taking as much again.  While there is more to be
 * done its next free comes the slow way, as that of a thread that is called.
 *
 * Of what it takes again soon it learns (reclaim/regret.h): until it has earned what that has cost nothing goes at once, but by age,
 * for which now and then a free comes the slow way. */
#ifndef HAK_RECLAIM_EXCESS_H
#define HAK_RECLAIM_EXCESS_H

#include "cache/heap.h"

/* Before a free pushes its block, which is to stay the youngest: caches are flushed when it is their turn. */
void excess_flush_when_due(struct heap *heap);
/* At the end of a slow path; true when it was a step's work. */
bool excess_give_when_due(struct heap *heap);

#endif
