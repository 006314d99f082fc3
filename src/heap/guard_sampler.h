/* guard_sampler.h: which requests get a guarded block (guard/guarded.h), and that every program has some.
 *
 * Nothing on the fast paths counts: of the requests that miss their magazine every options.guard_rate-th
 * is sampled, in the mean, at random distances.  For threads whose magazines never miss, in a program
 * with several, a ticker now and then makes the next free of one thread come the slow way; that empties
 * the magazine it was for, and the next request for such a block is sampled.  docs/decisions/0017. */
#ifndef HAK_HEAP_GUARD_SAMPLER_H
#define HAK_HEAP_GUARD_SAMPLER_H

#include "config/options.h"
#include "heap/heap.h"
#include "heap/slow_path.h"

/* A guarded block for this request, or NULL: most of the time. */
void *guard_sampler_take_slow(struct heap *heap, const struct allocation *allocation);
INLINE void *guard_sampler_take(struct heap *heap, const struct allocation *allocation) {
  return UNLIKELY(options.guard) ? guard_sampler_take_slow(heap, allocation) : NULL;
}

/* A diverted thread has come, with a block of the class: straight on from now, and in guard mode the next request for such
 * a block is sampled. */
void guard_sampler_reopen(struct heap *heap, unsigned class);

/* The ticker is the helper thread, in a program with threads: one of them at a time is sampled so, 10 blocks a second in the
 * whole program. */
enum { SAMPLER_TICK_MS = 100 };
bool guard_sampler_wants_ticks(void);
void guard_sampler_tick(void);

#endif
