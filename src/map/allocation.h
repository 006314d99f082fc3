/* allocation.h: a request, as all functions that serve it take it. */
#ifndef HAK_MAP_ALLOCATION_H
#define HAK_MAP_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/maker.h"

struct hak_heap; /* named/named_heap.h */

/* An explicit request: aligned, zeroed or with a call site of its own. */
struct allocation {
  size_t size;
  size_t alignment; /* a power of two */
  uint32_t site;
  bool is_growing; /* its block outgrew its place, and may grow on */
  bool is_zero;    /* out: the block reads as zero already */
  bool is_final;   /* out: memory given back would not help it */
  bool was_quick;  /* out: served with few stores, so that no other work is due */
  enum maker maker;
  struct hak_heap *named; /* the heap that serves it; NULL: the thread's own */
};

#endif
