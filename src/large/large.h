/* large.h: the Large tier: blocks above 32 KiB up to 1 MiB, one range each, no header.
 *
 *   thread's magazine → site cache (64 shards by call site) → range arenas
 *
 * The first level is the same magazine as for small blocks (src/heap); this file is what lies below.
 * A block's owner map entry carries the tag of the heap that may push it onto its magazine; freeing
 * another heap's block just rewrites the tag. */
#ifndef HAK_LARGE_LARGE_H
#define HAK_LARGE_LARGE_H

#include "large/site_cache.h"
#include "pool/range.h"

struct large_request {
  unsigned class;
  size_t bytes;           /* as asked for */
  size_t alignment_bytes; /* a power of two */
  uint32_t site;
  uint32_t tag;  /* of the heap that may push the block onto its magazine */
  unsigned home; /* arena to prefer */
  enum range_source source;
  bool is_zero; /* out: the block reads as zero */
};

/* A block, or 0. */
uintptr_t large_take(struct large_request *request, struct counters *counters);

/* Takes back a block that no magazine has room for. */
void large_give(uintptr_t block, struct counters *counters);

void large_purge(struct purge *purge, struct counters *counters);

#endif
