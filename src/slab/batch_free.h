/* batch_free.h: freed blocks on their way to their slabs, many at a time. */
#ifndef HAK_SLAB_BATCH_FREE_H
#define HAK_SLAB_BATCH_FREE_H

#include "slab/owner.h"

/* Frees blocks of any slabs: those of `owner` (whose latch is held; NULL for none) without atomics,
 * the others remotely. */
void batch_free(struct owner *owner, void **blocks, unsigned count, struct counters *counters);

#endif
