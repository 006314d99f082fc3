/* SPDX-License-Identifier: MIT
 *
 * route_p.c: Route P
 *
 * Hypothesis: an owner that sleeps on a full queue should lend its pages, if that cannot hurt it.
 * Seed:       not measured.
 * Lesson:     on by default in the product (src/slab/adopt.c), with these constants.
 *
 * The notes ask for 8 remote frees; a page of fewer blocks qualifies when all of them are free, or
 * four of the seven classes could never be adopted.
 */
#include "../core/routes.h"
#include "all.h"

static const struct route_policy policy = {
    .adopts = true,
    .refusal_ns = 200 * 1000,
    .idle_ns = 150 * 1000,
    .above_pages = 4,
    .least_blocks = 8,
};

static struct recycler owners = RECYCLER(struct owner);

static void *thread_begin(struct counters *counters) { return owner_begin(&owners, counters); }

static void thread_end(void *state) { recycler_give(&owners, state); }

static void *take(void *state, size_t size) {
  block_id block = owner_take(state, class_of(size), &policy);
  return block == 0 ? NULL : block_of(block);
}

static void give(void *state, void *block) { owner_give(state, block_id_of(block), &policy); }

const struct strategy route_p = {
    .name = "route-p",
    .sentence = "route-s with guarded adoption from owners that are alive but idle",
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .take = take,
    .give = give,
    .count_free = owners_count_free,
};
