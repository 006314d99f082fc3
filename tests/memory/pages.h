/* pages.h: bounds of resident memory where pages have more than 4 KiB. */
#ifndef TESTS_MEMORY_PAGES_H
#define TESTS_MEMORY_PAGES_H

#include <unistd.h>

#include "api/sizes.h"

static inline size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* This number of bytes in whole pages. */
static inline size_t in_pages(size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

/* hakmem's records stay.  Of a SuperSlab's 83 KiB 18 are in use, for which the bounds have room; in
 * larger pages the others are resident, too.  It holds 2 MiB, of which a third may be rounding. */
static inline size_t more_for_records(size_t slab_bytes) {
  enum { RECORD_KIB = 83, USED_KIB = 18 };
  size_t superslabs = slab_bytes * 4 / 3 / (2 * MIB) + 1;
  return page_bytes() == 4 * KIB ? 0 : superslabs * (RECORD_KIB - USED_KIB) * KIB;
}

/* The allowance for `count` touched pages. */
static inline size_t more_for_pages(size_t count) { return count * (page_bytes() - 4 * KIB); }

#endif
