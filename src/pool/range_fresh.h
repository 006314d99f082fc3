/* range_fresh.h: ranges of pages unused since the system gave them: CLEAN ones, addresses that are mapped again, and new chunks. */
#ifndef HAK_POOL_RANGE_FRESH_H
#define HAK_POOL_RANGE_FRESH_H

#include "pool/arena.h"

/* Looks through every arena, the home one first, for a free range of this kind; LIVE then, or NO_GRANULE. */
size_t range_take_kind(enum range_kind kind, const struct range_request *request,
                       struct counters *counters);

/* A CLEAN range, LIVE now, or NO_GRANULE. */
size_t range_take_clean(const struct range_request *request, struct counters *counters);

#endif
