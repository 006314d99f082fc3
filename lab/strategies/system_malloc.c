/* SPDX-License-Identifier: MIT
 *
 * system_malloc.c: not an experiment, but the references: this process's malloc and free, glibc's or
 * those of the library that LD_PRELOAD names: hakmem, mimalloc.
 */
#include "all.h"

#include <stdlib.h>

static void *thread_begin(struct counters *counters) { return counters; }

static void thread_end(void *state) { (void)state; }

static void *take(void *state, size_t size) {
  (void)state;
  return malloc(size);
}

static void give(void *state, void *block) {
  (void)state;
  free(block);
}

const struct strategy system_malloc = {
    .name = "malloc",
    .sentence = "malloc and free of the process, for LD_PRELOAD",
    .thread_begin = thread_begin,
    .thread_end = thread_end,
    .take = take,
    .give = give,
};
