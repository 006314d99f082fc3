/* SPDX-License-Identifier: MIT
 *
 * reenqueue.c
 *
 * Hypothesis: pages are lost because they are queued on an edge only; queue them again when they are left
 *             with free blocks, and none is.
 * Seed:       6.2 % reuse, 230,000 new pages.
 * Reason:     no page is lost, but adoption still steals: threads take pages from each other.
 */
#include "../core/adoption.h"
#include "all.h"

static const struct adoption_policy policy = {.threshold = 1, .queues_left_pages = true};

ADOPTION_STRATEGY(reenqueue, "reenqueue",
                  "adopt-at-once, and a page left with free blocks is pending again");
