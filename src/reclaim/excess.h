/* excess.h: purges free memory of a program with one thread that holds far more than its live bytes. Its thread may sleep, or hit its
 * magazines only, so that no round runs when the freed memory is a decay time old. So free memory above the budget
 * (HAKMEM_BIG_CACHE_BYTES) is purged at once, and again each time that the program has freed a quarter of the rest: whole slabs and
 * ranges, a step in each slow path; where next to nothing is live also the free pages of slabs in use. Free memory below the budget is
 * purged when next to nothing is live and the program has stopped freeing, without taking as much again. While work is left the next
 * free takes the slow path, as that of a called thread.
 *
 * Memory that is taken again soon costs credit (reclaim/regret.h): until the program has earned that again nothing is purged at once,
 * but by age, for which a free takes the slow path now and then. */
#ifndef HAK_RECLAIM_EXCESS_H
#define HAK_RECLAIM_EXCESS_H

#include "cache/heap.h"

/* Called before a free pushes its block, which is to stay the youngest: flushes caches if that step is due. */
void excess_flush_when_due(struct heap *heap);
/* Called at the end of a slow path; true when it did a step's work. */
bool excess_give_when_due(struct heap *heap);

#endif
