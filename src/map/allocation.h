/* allocation.h: a request, as all functions that serve it take it. */
#ifndef HAK_MAP_ALLOCATION_H
#define HAK_MAP_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/maker.h"

/* An explicit request: aligned, zeroed or with a call site of its own. */
struct allocation {
  size_t size;
  size_t alignment; /* a power of two */
  uint32_t site;
  bool is_growing; /* its block outgrew its place, and may grow on */
  bool is_own;     /* to be served by the thread's own heap, whichever is in use */
  bool is_named;   /* to be served by a named heap */
  bool is_zero;    /* out: the block reads as zero already */
  enum maker maker;
};

#endif
