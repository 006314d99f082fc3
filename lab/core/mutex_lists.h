/* SPDX-License-Identifier: MIT
 *
 * mutex_lists.h: the sharded lists, each under a lock of its own.
 */
#ifndef LAB_MUTEX_LISTS_H
#define LAB_MUTEX_LISTS_H

#include "shards.h"

void mutex_lists_push(block_id block, struct counters *counters);

/* Up to BATCH_BLOCKS blocks of the class from the first shard, counted from `start` on, that has
 * any; else those of a new page.  Empty when no page can be made.  Counts the reuse or the new
 * page. */
struct chain mutex_lists_fetch(unsigned class, unsigned start, struct counters *counters);

uint64_t mutex_lists_count(void);

#endif
