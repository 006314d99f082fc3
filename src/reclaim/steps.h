/* steps.h: gives back the memory that is free beyond the allowance (reclaim/allowance.h), whatever
 * its age, in steps of the slow paths.
 *
 *   state      begins when                             a slow path
 *   quiet      little is free, or the rest is stuck    looks
 *   waiting    more is free, and the program may       looks; so does one free in ten, as no slow
 *              sleep                                   path comes where requests hit magazines
 *   giving     too much is free: the caches are        does a step; so does each free of a program
 *              flushed                                 that may sleep
 *
 * Giving ends when no more is free than may be, or a step gives nothing: the rest is stuck, in
 * slabs in use or under a lock, until a part of the live blocks has gone. */
#ifndef HAK_RECLAIM_STEPS_H
#define HAK_RECLAIM_STEPS_H

#include "cache/heap.h"
#include "purge/purge.h"

/* True when giving begins: then the caches are to be flushed. Called before a free pushes its
 * block, which is to stay the youngest. */
bool steps_begin(const struct heap *heap, uint64_t now_ms);
/* After a flush while giving, inside the heap: few blocks shall stay in its caches at the end. */
void steps_shrink_magazines(struct heap *heap);
/* After the push: the next free comes to a slow path, too. */
void steps_divert(struct heap *heap, uint64_t now_ms);
/* Whether a step is due. */
bool steps_are_due(void);
/* After a step: whether another is due. */
void steps_note(const struct purge *purge);
/* After a round by age: memory that is free although it found nothing left is stuck. */
void steps_note_round(const struct purge *purge);

/* For a free that waits: whether nothing else is to be done. */
bool steps_pass(void);

#endif
