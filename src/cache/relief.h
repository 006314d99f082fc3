/* relief.h: what a thread gives up of its own before the system is asked for more memory (0022).
 *
 * A magazine of a class that the program has turned away from holds blocks of as many slabs, none of which can
 * go back to the pool: 2,048 blocks of 32 bytes, freed in random order, keep 50 MiB.  While all goes on as
 * before they cost nothing; when the process is about to grow they are what it need not grow by. */
#ifndef HAK_CACHE_RELIEF_H
#define HAK_CACHE_RELIEF_H

#include "cache/heap.h"

/* Whether the heap has anything to give up. */
bool relief_is_possible(const struct heap *heap);

/* Empties the magazines of classes that served nothing since the last time, and gives the owner's wholly free slabs
 * to the pool.  Takes the latch. */
void relief_give(struct heap *heap);

#endif
