/* shadow.h: random calls against a shadow model that threads share.
 *
 * A table of slots holds the model: where a block is, its size, alignment and stamp.  Any thread
 * may lock any slot, so blocks wander between threads and outlive those that made them. */
#ifndef TESTS_CONCURRENCY_SHADOW_H
#define TESTS_CONCURRENCY_SHADOW_H

#include <stdatomic.h>

#include "api/random.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

enum { SLOTS = 2048, STAMP_HEAD_BYTES = 2048, PAGE_BYTES = 4096 };

typedef struct {
  atomic_flag locked;
  unsigned char *block; /* NULL: the slot is free */
  size_t bytes, usable_bytes;
  uint64_t seed;
} slot;

static slot slots[SLOTS];

/* The head, one word a page, and the last word: enough to notice any other owner of a page. */
static inline void mark(slot *held) {
  size_t head = held->bytes < STAMP_HEAD_BYTES ? held->bytes : STAMP_HEAD_BYTES;
  stamp_write(held->block, head, held->seed);
  for (size_t at = PAGE_BYTES; at + 8 < held->bytes; at += PAGE_BYTES) {
    uint64_t word = stamp_word(held->seed, at);
    __builtin_memcpy(held->block + at, &word, 8);
  }
  if (held->bytes > head) held->block[held->bytes - 1] = (unsigned char)held->seed;
}

/* The first `kept_bytes` of what mark wrote for held->bytes. */
static inline void check_mark(const slot *held, size_t kept_bytes) {
  size_t bytes = kept_bytes < held->bytes ? kept_bytes : held->bytes;
  size_t head = bytes < STAMP_HEAD_BYTES ? bytes : STAMP_HEAD_BYTES;
  bool holds = stamp_holds(held->block, head, held->seed);
  for (size_t at = PAGE_BYTES; at + 8 < held->bytes && at + 8 <= bytes; at += PAGE_BYTES) {
    uint64_t word = stamp_word(held->seed, at);
    holds = holds && __builtin_memcmp(&word, held->block + at, 8) == 0;
  }
  if (bytes == held->bytes && bytes > head)
    holds = holds && held->block[bytes - 1] == (unsigned char)held->seed;
  CHECK_MSG(holds, "%zu bytes at %p, %zu kept", held->bytes, (void *)held->block, bytes);
}

static inline size_t random_size(uint64_t *random) {
  size_t kind = random_below(random, 1000);
  return kind < 600   ? random_between(random, 1, KIB)
         : kind < 950 ? random_between(random, KIB, 32 * KIB)
         : kind < 990 ? random_between(random, 32 * KIB, 128 * KIB)
         : kind < 998 ? random_between(random, 128 * KIB, MIB)
                      : random_between(random, MIB, 4 * MIB);
}

static inline void allocate(slot *held, uint64_t *random) {
  size_t bytes = random_size(random), alignment = bytes <= 8 ? 8 : 16;
  void *block = NULL;
  switch (random_below(random, 6)) {
    case 0:
      block = calloc(bytes, 1);
      CHECK(block != NULL && all_bytes_are(block, bytes, 0));
      break;
    case 1:
      alignment = (size_t)8 << random_below(random, 12); /* up to 16 KiB */
      CHECK(posix_memalign(&block, alignment, bytes) == 0);
      break;
    case 2: block = realloc(NULL, bytes); break;
    default: block = malloc(bytes);
  }
  CHECK_MSG(block != NULL && (uintptr_t)block % alignment == 0, "%zu bytes at %p", bytes, block);
  held->block = block;
  held->bytes = bytes;
  held->usable_bytes = malloc_usable_size(block);
  held->seed = random_next(random);
  CHECK(held->usable_bytes >= bytes);
  mark(held);
}

static inline void resize(slot *held, uint64_t *random) {
  size_t bytes = random_size(random);
  held->block = MUST(realloc(held->block, bytes));
  check_mark(held, bytes);
  held->bytes = bytes;
  held->usable_bytes = malloc_usable_size(held->block);
  CHECK(held->usable_bytes >= bytes);
  mark(held);
}

static inline void release(slot *held) {
  CHECK(malloc_usable_size(held->block) == held->usable_bytes);
  check_mark(held, held->bytes);
  free(held->block);
  held->block = NULL;
}

/* One call, on a slot that nobody else has at the moment; does nothing when somebody has it. */
static inline void shadow_step(uint64_t *random) {
  slot *held = &slots[random_below(random, SLOTS)];
  if (atomic_flag_test_and_set_explicit(&held->locked, memory_order_acquire)) return;
  if (held->block == NULL) {
    allocate(held, random);
  } else if (random_below(random, 8) == 0) {
    resize(held, random);
  } else {
    release(held);
  }
  atomic_flag_clear_explicit(&held->locked, memory_order_release);
}

/* While one thread runs. */
static inline void shadow_release_all(void) {
  for (size_t i = 0; i < SLOTS; i++)
    if (slots[i].block != NULL) release(&slots[i]);
}

#endif
