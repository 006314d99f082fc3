/* blocks.h: many blocks of one size, every page of them touched. */
#ifndef TESTS_MEMORY_BLOCKS_H
#define TESTS_MEMORY_BLOCKS_H

#include <sys/mman.h>

#include "api/sizes.h"
#include "memory/rss.h"

enum { TOUCH_EVERY_BYTES = 4096 };

typedef struct {
  void **at;
  size_t count, size;
} blocks;

/* The table of pointers is mapped, not malloced: it must not disturb what is measured. */
static inline blocks blocks_table(size_t total_bytes, size_t size) {
  blocks made = {NULL, total_bytes / size, size};
  made.at = mmap(NULL, made.count * sizeof *made.at, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  CHECK(made.at != MAP_FAILED);
  return made;
}

static inline void blocks_unmap(blocks *table) {
  munmap(table->at, table->count * sizeof *table->at);
}

static inline void blocks_fill(blocks *table) {
  for (size_t i = 0; i < table->count; i++) {
    char *block = MUST(malloc(table->size));
    for (size_t at = 0; at < table->size; at += TOUCH_EVERY_BYTES) block[at] = 1;
    block[table->size - 1] = 1;
    table->at[i] = block;
  }
}

static inline void blocks_free(blocks *table) {
  for (size_t i = 0; i < table->count; i++) {
    free(table->at[i]);
    table->at[i] = NULL;
  }
}

static inline void blocks_use(size_t size, size_t count) {
  blocks table = blocks_table(size * count, size);
  blocks_fill(&table);
  blocks_free(&table);
  blocks_unmap(&table);
}

/* A few blocks of a thread, whose table is on its own stack: both ends touched, then freed. */
static inline void blocks_come_and_go(char **table, size_t count, size_t size) {
  for (size_t i = 0; i < count; i++) {
    table[i] = MUST(malloc(size));
    table[i][0] = table[i][size - 1] = 1;
  }
  for (size_t i = 0; i < count; i++) free(table[i]);
}

/* RSS above `start_bytes`, in whole MiB; never negative. */
static inline size_t rss_above_mib(size_t start_bytes) {
  size_t now_bytes = rss_bytes();
  return now_bytes > start_bytes ? (now_bytes - start_bytes) / MIB : 0;
}

static inline void sleep_ms(unsigned ms) { usleep(ms * 1000); }

#endif
