/* slab_pool.h: the shared pool of slabs: acquire_slab, release_slab and purge by age.
 *
 *   acquire_slab(class)
 *     stage 1   an EMPTY slot of the class           pop from the class's stack
 *     stage 2   UNUSED slots of a SuperSlab in use   clear bits, lowest address first, dirty first; before
 *                                                    clean ones an EMPTY slot of another class
 *     stage 3   a SuperSlab from the LRU of kept ones, else one that was given back, else the OS
 *
 * Lock-free: bit masks and tagged stacks.  Only metadata growth and the operating system can make a
 * caller wait.  All functions may be called from any thread. */
#ifndef HAK_POOL_SLAB_POOL_H
#define HAK_POOL_SLAB_POOL_H

#include "base/counters.h"
#include "pool/purge.h"
#include "pool/superslab.h"

/* Called once, before any other function; false without memory. */
bool slab_pool_init(void);

/* A slab in state ACTIVE, all blocks free in `local`, owned by nobody: the caller is its only
 * holder.  NULL when there is no memory. */
struct slab *acquire_slab(unsigned class, struct counters *counters);
/* The same in three steps: slots that have been used before; then clean ones, and SuperSlabs that have pages; then what the
 * system gives. */
struct slab *acquire_touched_slab(unsigned class, struct counters *counters);
struct slab *acquire_untouched_slab(unsigned class, struct counters *counters);
struct slab *acquire_slab_from_system(unsigned class, struct counters *counters);

/* Takes back a slab whose blocks are all free in `local`, have been so for `age_ms`, and that has no
 * owner. */
void release_slab(struct slab *slab, uint32_t age_ms, struct counters *counters);

/* Gives pages back that have been free for long enough. */
void slab_pool_purge(struct purge *purge);

/* In a cgroup with a memory limit: more wholly free SuperSlabs are kept than it allows.  Then those beyond go at
 * once. */
bool slab_pool_is_over_limit(void);
void slab_pool_purge_kept(struct purge *purge);

struct slab_pool_sizes {
  uint64_t mapped_bytes; /* SuperSlabs that have address space */
  uint64_t empty_bytes;  /* EMPTY slabs */
  uint64_t dirty_bytes;  /* EMPTY slabs, UNUSED slots with pages and kept SuperSlabs */
};
void slab_pool_measure(struct slab_pool_sizes *sizes);

#endif
