/* guard_sampler.h: which requests get a guarded block (guard/guarded.h), and that every program has some.
 *
 * Nothing on the fast paths counts: of the requests that miss their magazine every options.guard_rate-th
 * is sampled, in the mean, at random distances.  For threads whose magazines never miss, in a program
 * with several, a ticker now and then makes the next free of one thread come the slow way; that empties
 * the magazine it was for, and the next request for such a block is sampled.  docs/decisions/0017. */
#ifndef HAK_CACHE_GUARD_SAMPLER_H
#define HAK_CACHE_GUARD_SAMPLER_H

#include "base/counters.h"
#include "cache/allocation.h"

/* Of a heap. */
struct guard_sampler {
  uint64_t random;    /* 0: not begun yet */
  uint64_t countdown; /* so many more requests that miss, the last of which is sampled */
};

/* In guard mode: a guarded block for this request, or NULL: most of the time. */
void *guard_sampler_take(struct guard_sampler *sampler, const struct allocation *allocation,
                         struct counters *counters);

#endif
