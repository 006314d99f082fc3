/* SPDX-License-Identifier: MIT
 *
 * threshold_2.c
 *
 * Hypothesis: if four are too many, two may be right.
 * Seed:       3.6 % reuse.
 * Reason:     as with four: pages below the threshold are lost.
 */
#include "../core/adoption.h"
#include "all.h"

static const struct adoption_policy policy = {.threshold = 2, .queues_left_pages = false};

ADOPTION_STRATEGY(threshold_2, "threshold-2",
                  "adopt-at-once, but a page is pending from its 2nd remote free on");
