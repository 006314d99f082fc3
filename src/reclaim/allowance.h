/* allowance.h: how much free memory may stay, of any age (docs/decisions/0030).
 *
 *   allowed(age) = young · falling(age / decay time) + debt · falling(age / two decay times)
 *
 *   least   half of the live bytes, a swing of the working set
 *   most    the same and the budget, HAKMEM_BIG_CACHE_BYTES
 *   young   `most`; in a program that may sleep at any time, so that no slow path comes later, less
 *           the credit that processor time has earned, down to `least`; `least` at once where it is
 *           likely to free everything
 *   debt    was taken again after it had gone (purge/purge_credit.h)
 *
 * purge.h has the curve, steps.h what a slow path does about it. */
#ifndef HAK_RECLAIM_ALLOWANCE_H
#define HAK_RECLAIM_ALLOWANCE_H

#include "purge/purge.h"

/* Owners that a slow path visits: some cache lines of each, which other threads write. */
enum { ALLOWANCE_OWNERS_MAX = 16 };

/* A part that is small beside the whole: of free memory, what is live; of a limit, what the process
 * has grown by. */
enum { ALLOWANCE_SMALL_DIVISOR = 32 };

/* Bytes that are much: a process that takes fewer gains too little from a helper, or from its
 * cgroup's limits, to pay for them; and at least that much goes early of what is free beside half
 * of the live bytes. */
#define ALLOWANCE_MUCH_BYTES ((uint64_t)16 << 20)
/* Bytes that may be free beside `least` without a look at the clock, or are left when nearly all is
 * freed. A step gives back as much. */
#define ALLOWANCE_LITTLE_BYTES ((uint64_t)4 << 20)

struct allowance {
  bool may_sleep;      /* no tick is certain to come: one thread, and no helper */
  uint64_t live, free; /* bytes; free blocks in magazines count as live */
  uint64_t blocks;     /* live ones, at least */
  uint64_t least, most;
  /* By the credit, for which the kernel is asked now and then: */
  uint64_t young, debt;
  size_t early_run_bytes; /* the least neighbouring pages of a slab in use that go early */
  uint64_t lot;           /* beyond that, at least, steps begin */
};

bool allowance_may_sleep(void);
/* Live and free bytes, and the bounds that follow from these alone. */
struct allowance allowance_measure(void);
/* The rest. */
void allowance_decide(struct allowance *allowance);

/* Whether so few blocks are left that the program is likely to free those, too. Each of these frees
 * does a step: together they can give back what is free by then. */
bool allowance_is_nearly_all(const struct allowance *allowance);

/* Before a round: the memory that it may leave. */
void allowance_bound(struct purge *purge);

#endif
