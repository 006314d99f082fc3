/* SPDX-License-Identifier: MIT
 *
 * strategy.h: one experiment, as the load sees it.
 *
 * The thread's state is handed to every call, so that no strategy pays for thread-local storage and
 * none is favoured by how it finds its state.
 */
#ifndef LAB_STRATEGY_H
#define LAB_STRATEGY_H

#include "counters.h"

#include <stddef.h>
#include <stdint.h>

struct strategy {
  const char *name;
  const char *sentence; /* for --help */

  /* Start and end of a thread.  `counters` live until thread_end returns. */
  void *(*thread_begin)(struct counters *counters);
  void (*thread_end)(void *state);

  void *(*take)(void *state, size_t size); /* NULL: the pages are used up */
  void (*give)(void *state, void *block);

  /* All blocks that wait to be used again, when no thread runs any more; NULL when it cannot
   * say. */
  uint64_t (*count_free)(void);
};

/* In the order of lab/EXPERIMENTS.md; ends with NULL. */
extern const struct strategy *const strategies[];

#endif
