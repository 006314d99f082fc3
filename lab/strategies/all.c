/* SPDX-License-Identifier: MIT
 *
 * all.c: see all.h.
 */
#include "all.h"

const struct strategy *const strategies[] = {
    &sharded_mutex, &cas_walk,  &cas_singles,     &adopt_at_once, &threshold_4,
    &threshold_2,   &reenqueue, &adopt_announced, &thread_list,   &magazine_64,
    &global_cache,  &route_s,   &route_p,         &system_malloc, NULL,
};
