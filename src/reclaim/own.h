/* own.h: what a thread does about its own caches and slabs, by age, when it comes to a slow path. */
#ifndef HAK_RECLAIM_OWN_H
#define HAK_RECLAIM_OWN_H

#include "cache/heap.h"

/* True when a round has called the thread, as it came to no slow path: all its caches are flushed now. */
bool own_answer_call(struct heap *heap);

/* Once in an interval: magazines that are as they were the time before are flushed. */
void own_flush_when_due(struct heap *heap, uint64_t now_ms);

/* Likewise: free pages of its slabs in use wait, and old ones are purged. */
void own_scan_when_due(struct heap *heap, uint64_t now_ms);

#endif
