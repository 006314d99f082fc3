/* workload.h: a program in small that touches every tier and most of the operating system's
 * contract, and that bears any refusal: a request fails with NULL and ENOMEM, and nothing that
 * lives is changed. Each check that fails ends the process. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <errno.h>

#include "child.h"
#include "fake/os_fake.h"
#include "hakmem/hakmem.h"

enum { WORKLOAD_BLOCKS = 700, WORKLOAD_REMOTE_BLOCKS = 300, WORKLOAD_EDGE_BYTES = 64 };

struct workload {
  bool must_succeed;
  uint64_t failures;
  struct {
    unsigned char *block;
    size_t size;
  } blocks[WORKLOAD_BLOCKS];
  unsigned count;
};

/* Content: both ends of the block, so that large ones stay mostly untouched. */
static inline void workload_fill(unsigned char *block, size_t size) {
  size_t edge = size < WORKLOAD_EDGE_BYTES ? size : WORKLOAD_EDGE_BYTES;
  memset(block, (int)(size % 251) + 1, edge);
  memset(block + size - edge, (int)(size % 251) + 1, edge);
}

static inline void workload_check(const unsigned char *block, size_t from, size_t to, size_t size) {
  for (size_t at = from; at < to; at++) REQUIRE(block[at] == size % 251 + 1);
}

static inline void workload_check_all(const unsigned char *block, size_t size) {
  size_t edge = size < WORKLOAD_EDGE_BYTES ? size : WORKLOAD_EDGE_BYTES;
  workload_check(block, 0, edge, size);
  workload_check(block, size - edge, size, size);
}

/* The one place that judges what an allocating call returned. */
static inline void *workload_judge(struct workload *load, void *block) {
  if (block) return block;
  REQUIRE(errno == ENOMEM && !load->must_succeed);
  load->failures++;
  return NULL;
}

static inline void workload_keep(struct workload *load, void *block, size_t size) {
  if (!workload_judge(load, block)) return;
  REQUIRE(load->count < WORKLOAD_BLOCKS);
  workload_fill(block, size);
  load->blocks[load->count].block = block;
  load->blocks[load->count++].size = size;
}

static inline void workload_free_all(struct workload *load) {
  while (load->count) {
    load->count--;
    workload_check_all(load->blocks[load->count].block, load->blocks[load->count].size);
    hak_free(load->blocks[load->count].block);
  }
}

static inline void workload_malloc(struct workload *load) {
  static const size_t sizes[] = {1,     8,     24,     100,     1000,    3000,           20000,
                                 40000, 65536, 300000, 1 << 20, 1500000, (size_t)5 << 20};
  for (unsigned round = 0; round < 12; round++)
    for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++)
      workload_keep(load, (errno = 0, hak_malloc(sizes[index])), sizes[index]);
}

static inline void workload_calloc(struct workload *load) {
  static const size_t sizes[] = {7, 500, 5000, 50000, 1 << 20, (size_t)3 << 20};
  for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    unsigned char *block = (errno = 0, hak_calloc(1, sizes[index]));
    if (!workload_judge(load, block)) continue;
    for (size_t at = 0; at < sizes[index]; at += at % 4096 ? 1 : 61) REQUIRE(block[at] == 0);
    workload_keep(load, block, sizes[index]);
  }
}

static inline void workload_aligned(struct workload *load) {
  for (size_t alignment = 32; alignment <= (size_t)4 << 20; alignment *= 4) {
    void *block = (errno = 0, hak_aligned_alloc(alignment, 5000));
    if (block) REQUIRE((uintptr_t)block % alignment == 0);
    workload_keep(load, block, 5000);
    block = NULL;
    int error = hak_posix_memalign(&block, alignment, 70000);
    REQUIRE(error == (block ? 0 : ENOMEM));
    if (error) errno = ENOMEM;
    workload_keep(load, block, 70000);
  }
}

/* Resizes one block up and down; a refused step leaves it as it was. */
static inline void workload_realloc(struct workload *load) {
  static const size_t sizes[] = {10,      100,     1000,     10000,   100000,  1 << 20, 2 << 20,
                                 6 << 20, 9 << 20, 20 << 20, 5 << 20, 1 << 20, 30000,   9};
  unsigned char *block = NULL;
  enum { NEIGHBOURS = 16 };
  void *neighbours[NEIGHBOURS] = {NULL};
  size_t size = 0;
  for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    for (unsigned at = 0; sizes[index] == (size_t)9 << 20 && at < NEIGHBOURS; at++)
      neighbours[at] = hak_malloc((size_t)3 << 20); /* no room to grow */
    unsigned char *resized = (errno = 0, hak_realloc(block, sizes[index]));
    if (!workload_judge(load, resized)) {
      if (block) workload_check_all(block, size);
      continue;
    }
    size_t kept = size < sizes[index] ? size : sizes[index];
    size_t edge = kept < WORKLOAD_EDGE_BYTES ? kept : WORKLOAD_EDGE_BYTES;
    workload_check(resized, 0, edge, size);
    if (kept == size) workload_check(resized, size - edge, size, size);
    block = resized;
    workload_fill(block, size = sizes[index]);
  }
  hak_free(block);
  for (unsigned at = 0; at < NEIGHBOURS; at++) hak_free(neighbours[at]);
}

/* A thread frees what the other made, and leaves blocks of its own behind. */
static inline void *workload_thread(void *argument) {
  struct workload *load = argument;
  workload_free_all(load);
  for (unsigned index = 0; index < WORKLOAD_REMOTE_BLOCKS; index++) {
    size_t size = index % 50 ? 48 + index : 50000;
    workload_keep(load, (errno = 0, hak_malloc(size)), size);
  }
  return NULL;
}

static inline void workload_threads(struct workload *load) {
  struct workload handed = {.must_succeed = load->must_succeed};
  for (unsigned index = 0; index < WORKLOAD_REMOTE_BLOCKS; index++)
    workload_keep(&handed, (errno = 0, hak_malloc(40 + index)), 40 + index);
  for (unsigned life = 0; life < 3; life++) on_a_thread(workload_thread, &handed);
  workload_free_all(&handed);
  load->failures += handed.failures;
}

static inline void workload_run(struct workload *load) {
  workload_malloc(load);
  workload_calloc(load);
  workload_free_all(load);
  os_fake_advance_ms(2000); /* what is free is old now: the next slow paths purge */
  workload_aligned(load);
  workload_realloc(load);
  workload_threads(load);
  hak_purge(true);
  workload_malloc(load);
  workload_free_all(load);
  hak_purge(true);
}

#endif
