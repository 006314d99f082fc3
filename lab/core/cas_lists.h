/* SPDX-License-Identifier: MIT
 *
 * cas_lists.h: the sharded lists without locks.  A head is one word, a block and a tag that every pop
 * changes, so that a compare-and-swap cannot mistake a list that came back to the same first block for
 * one that never changed (ABA).
 */
#ifndef LAB_CAS_LISTS_H
#define LAB_CAS_LISTS_H

#include "shards.h"

typedef _Atomic uint64_t cas_head; /* tag << 32 | block; zero is an empty list */

void cas_push(cas_head *head, struct chain chain, struct counters *counters);

/* Up to `wanted` blocks by one compare-and-swap: the walk is inside the retry loop. */
struct chain cas_pop_walk(cas_head *head, uint32_t wanted, struct counters *counters);

block_id cas_pop_one(cas_head *head, struct counters *counters);

void cas_lists_push(block_id block, struct counters *counters);

/* As mutex_lists_fetch; `pop_batch` takes up to BATCH_BLOCKS off one list. */
typedef struct chain pop_batch_function(cas_head *head, struct counters *counters);
struct chain cas_lists_fetch(unsigned class, unsigned start, pop_batch_function *pop_batch,
                             struct counters *counters);

uint64_t cas_lists_count(void);

#endif
