/* SPDX-License-Identifier: MIT
 *
 * blocks.h: how the benchmarks allocate, touch and free, and where they keep their own arrays.
 */
#ifndef BENCH_BLOCKS_H
#define BENCH_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* One write a page on every machine with pages of 4 KiB and more. */
enum { TOUCH_STEP_BYTES = 4096 };

static inline _Noreturn void out_of_memory(size_t size) {
  fprintf(stderr, "benchmark: out of memory asking for %zu bytes\n", size);
  _exit(1);
}

/* A benchmark found something wrong: an allocator that loses content must not win. */
static inline _Noreturn void give_up(const char *what) {
  fprintf(stderr, "benchmark: %s\n", what);
  _exit(1);
}

/* A benchmark that went on with NULL would measure nothing, so failure ends it. */
static inline unsigned char *block_new(size_t size) {
  unsigned char *block = malloc(size);
  if (__builtin_expect(block == NULL, 0)) {
    out_of_memory(size);
  }
  return block;
}

/* The least a user does with a block: write its first and its last byte.  Also keeps the compiler
 * from removing the pair of calls. */
static inline void touch_ends(unsigned char *block, size_t size) {
  block[0] = 1;
  block[size - 1] = 1;
}

/* One byte a page: makes the kernel back the block, and does nothing more. */
static inline void touch_pages(unsigned char *block, size_t size) {
  for (size_t at = 0; at < size; at += TOUCH_STEP_BYTES) {
    block[at] = 1;
  }
}

/* Zeroed memory for the benchmark's own arrays, straight from the kernel, as only the blocks of
 * the load are to be measured, not the arrays that point at them.  Never given back. */
static inline void *own_pages(size_t bytes) {
  void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    out_of_memory(bytes);
  }
  return pages;
}

#endif
