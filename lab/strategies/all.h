/* SPDX-License-Identifier: MIT
 *
 * all.h: every experiment by name, one file each.
 */
#ifndef LAB_ALL_H
#define LAB_ALL_H

#include "../core/strategy.h"

extern const struct strategy sharded_mutex, cas_walk, cas_singles, thread_list, magazine_64,
    global_cache, adopt_at_once, adopt_announced, threshold_4, threshold_2, reenqueue, route_s,
    route_p, system_malloc;

#endif
