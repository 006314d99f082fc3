/* heaps.h: the whole library on the fake system, through its own API, and what it counted. */
#ifndef HEAPS_H
#define HEAPS_H

#include <errno.h>

#include "child.h"
#include "config/options.h"
#include "fake/os_fake.h"
#include "hakmem/hakmem.h"
#include "observe/snapshot.h"
#include "report/report.h"

static inline struct snapshot look(void) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  return snapshot;
}

static inline uint64_t counted(enum counter which) { return look().counters[which]; }

static inline struct hak_figures figures_of(hak_heap *heap) {
  struct hak_figures figures;
  hak_heap_figures(heap, &figures, sizeof figures);
  return figures;
}

/* Options are read when the library starts; tests change them afterwards. */
static inline void start_library(void) {
  hak_free(hak_malloc(1));
  hak_purge(true);
}

/* Before it starts. */
static inline void be_hardened(uint64_t level) {
  static char setting[] = "HAKMEM_HARDEN=0";
  static char *environment[] = {setting, NULL};
  setting[sizeof setting - 2] = (char)('0' + level);
  os_fake.environment = environment;
}

/* A misuse is one line then, without the stack. */
static inline void start_hardened(uint64_t level) {
  be_hardened(level);
  start_library();
  REQUIRE(options.harden == level);
  misuse_may_walk = NULL;
}

static inline void *must_malloc(size_t size) {
  void *block = hak_malloc(size);
  REQUIRE(block);
  return block;
}

#endif
