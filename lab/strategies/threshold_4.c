/* SPDX-License-Identifier: MIT
 *
 * threshold_4.c
 *
 * Hypothesis: adopting a page for one block is not worth it; wait until four are free.
 * Seed:       0.6 % reuse.
 * Reason:     pages below the threshold are lost: no thread looks at them again.  A page of two or three
 *             blocks never reaches it.
 */
#include "../core/adoption.h"
#include "all.h"

static const struct adoption_policy policy = {.threshold = 4, .queues_left_pages = false};

ADOPTION_STRATEGY(threshold_4, "threshold-4",
                  "adopt-at-once, but a page is pending from its 4th remote free on");
