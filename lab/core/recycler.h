/* SPDX-License-Identifier: MIT
 *
 * recycler.h: states of ended threads, with all that they hold, for the threads that come next.  It is
 * the same for all strategies (M5), and not counted among their locks: one visit a thread.
 */
#ifndef LAB_RECYCLER_H
#define LAB_RECYCLER_H

#include "counters.h"

#include <pthread.h>
#include <stddef.h>

/* First member of a state. */
struct recycled {
  struct counters *counters; /* of the thread that uses it now */
  uint32_t number;           /* 1, 2, … in the order of their making */
  struct recycled *next;
};

struct recycler {
  size_t state_bytes;
  pthread_mutex_t mutex;
  struct recycled *first;
  uint32_t made;
};

#define RECYCLER(type) \
  { .state_bytes = sizeof(type), .mutex = PTHREAD_MUTEX_INITIALIZER }

/* A state that an ended thread left, or a new, zeroed one. */
void *recycler_take(struct recycler *recycler, struct counters *counters);
void recycler_give(struct recycler *recycler, void *state);

#endif
