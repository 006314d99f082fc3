/* SPDX-License-Identifier: MIT
 *
 * recycler.c: see recycler.h.
 */
#include "recycler.h"

#include "pages.h"

void *recycler_take(struct recycler *recycler, struct counters *counters) {
  pthread_mutex_lock(&recycler->mutex);
  struct recycled *state = recycler->first;
  if (state != NULL) {
    recycler->first = state->next;
  } else {
    state = records_new(recycler->state_bytes);
    state->number = ++recycler->made;
  }
  pthread_mutex_unlock(&recycler->mutex);
  state->counters = counters;
  return state;
}

void recycler_give(struct recycler *recycler, void *state) {
  struct recycled *recycled = state;
  pthread_mutex_lock(&recycler->mutex);
  recycled->counters = NULL;
  recycled->next = recycler->first;
  recycler->first = recycled;
  pthread_mutex_unlock(&recycler->mutex);
}
