/* SPDX-License-Identifier: MIT
 *
 * sleepers.c: see sleepers.h.
 */
#include "sleepers.h"

#include "blocks.h"
#include "rng.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

/* Small stacks: thousands of them are copied by fork. */
enum { BLOCKS = 20, KEPT = 5, MIN_SIZE = 16, MAX_SIZE = 512, STACK_BYTES = 64 << 10 };

static sem_t asleep, never;

static void *allocate_and_sleep(void *argument) {
  struct rng rng = rng_seed((uint64_t)(uintptr_t)argument);
  unsigned char *blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    size_t size = rng_between(&rng, MIN_SIZE, MAX_SIZE);
    blocks[i] = block_new(size);
    touch_ends(blocks[i], size);
  }
  for (int i = KEPT; i < BLOCKS; i++) {
    free(blocks[i]);
  }
  sem_post(&asleep);
  for (;;) { /* a signal may wake it */
    sem_wait(&never);
  }
  return NULL;
}

void sleepers_start(uint64_t count) {
  pthread_attr_t small_stack;
  pthread_t thread;
  sem_init(&asleep, 0, 0);
  sem_init(&never, 0, 0);
  pthread_attr_init(&small_stack);
  pthread_attr_setstacksize(&small_stack, STACK_BYTES);
  for (uintptr_t i = 0; i < count; i++) {
    int error = pthread_create(&thread, &small_stack, allocate_and_sleep, (void *)i);
    if (error != 0) {
      fprintf(stderr, "benchmark: no thread %zu of %zu: %s\n", (size_t)i + 1, (size_t)count,
              strerror(error));
      _exit(1);
    }
  }
  pthread_attr_destroy(&small_stack);
  for (uint64_t i = 0; i < count; i++) {
    sem_wait(&asleep);
  }
}
