/* SPDX-License-Identifier: MIT
 *
 * adopt_announced.c
 *
 * Hypothesis: adopt_at_once loses not the stolen pages, but those that only their owner frees into: they
 *             are never announced.
 * Seed:       not tried; this laboratory asks it to test the reason that the notes give.
 */
#include "../core/adoption.h"
#include "all.h"

static const struct adoption_policy policy = {.threshold = 1, .announces_own = true};

ADOPTION_STRATEGY(adopt_announced, "adopt-announced",
                  "adopt-at-once, and the owner's own frees are announced, too");
