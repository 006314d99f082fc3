/* guard_sampler.h: chooses the requests that get a guarded block (guard/guarded.h), some in every
 * program.
 *
 * Nothing on the fast paths counts: on average one in options.guard_rate requests that miss their
 * magazine is sampled, at random distances.  For threads whose magazines never miss, in a program
 * with several, a ticker now and then makes one thread's next free take the slow path; that empties
 * the block's magazine, and the next request for such a block is sampled. docs/decisions/0017. */
#ifndef HAK_GUARD_GUARD_SAMPLER_H
#define HAK_GUARD_GUARD_SAMPLER_H

#include "base/compiler.h"

/* One in each heap. */
struct guard_sampler {
  uint64_t random;    /* 0: not begun yet */
  uint64_t countdown; /* requests that miss until the next sample, which included */
};

/* In guard mode: whether this request, of a size that may be guarded, is chosen. */
bool guard_sampler_chooses(struct guard_sampler *sampler);
/* Whether the block ends where its pages do, else it begins there. */
bool guard_sampler_draws_end(struct guard_sampler *sampler);

#endif
