/* survey.h: what slabs, magazines and remote-free buffers hold, class by class: walked, not counted.
 *
 * Nobody is stopped, no latch taken and no call of the system made: records of other threads, which are never
 * unmapped, are copied as they are (base/peek.h).  While threads run, figures may be some batches apart; at
 * rest they are exact.  Looks at every slab: for reports. */
#ifndef HAK_OBSERVE_SURVEY_H
#define HAK_OBSERVE_SURVEY_H

#include "cache/heap.h"

struct class_survey {
  uint64_t slabs;           /* ACTIVE ones */
  uint64_t capacity_blocks; /* that those have; of Large classes the blocks that are not free */
  uint64_t free_blocks;     /* in slabs, those that other threads freed included */
  uint64_t cached_blocks;   /* in magazines and remote-free buffers */
  uint64_t live_blocks;     /* the rest: the program's */
  uint64_t counted[sizeof(struct class_counters) / sizeof(uint64_t)]; /* in their order */
};

struct survey {
  struct class_survey classes[CLASS_COUNT];
  uint64_t heaps_in_use, heaps_parked; /* of threads that run, of threads that ended */
};

void survey_take(struct survey *survey);

#endif
