#include "slab/batch_free.h"

#include "slab/pending.h"
#include "slab/slab.h"

/* Blocks of one slab of another heap: a run is the blocks of one bitmap word, whose frees are one
 * atomic OR. */
static unsigned give_remote(struct slab *slab, void *const *blocks, unsigned block_count,
                            struct counters *counters) {
  unsigned given = 0, word = 0, index;
  uint64_t run = 0;
  for (; given < block_count && slab_has_block(slab, (uintptr_t)blocks[given], &index); given++) {
    uint64_t bit = UINT64_C(1) << index % 64;
    if (run && (index / 64 != word || run & bit)) {
      slab_free_remote(slab, word, run, counters);
      run = 0;
    }
    word = index / 64;
    run |= bit;
  }
  if (run) slab_free_remote(slab, word, run, counters);
  return given;
}

/* Gives back the first blocks, up to the first of another slab. */
RESIDENT static unsigned give_to_slab(struct owner *owner, void *const *blocks,
                                      unsigned block_count, struct counters *counters) {
  struct slab *slab = slab_of_block((uintptr_t)*blocks);
  /* relaxed: it changes to or from `owner` only under the latch that this thread holds. */
  bool is_own = load_relaxed(&slab->owner) == owner;
  unsigned given = is_own ? slab_put(slab, owner, blocks, block_count)
                          : give_remote(slab, blocks, block_count, counters);
  if (LIKELY(given)) return given;
  slab_fail_pointer(slab, (uintptr_t)*blocks, "free");
  return 1; /* left alone */
}

/* Blocks freed in random order: many have another slab than the one before, and with a large live
 * set their records are not in the cache. They are taken in groups, one by one, with their data
 * prefetched. */
enum { GROUP_BLOCKS = 16 };

/* The first half stands for all. From one change in four on, visiting a slab for every run, and an
 * unpredictable branch, cost more. */
static bool are_scattered(void *const *blocks) {
  enum { CHECKED = GROUP_BLOCKS / 2 };
  unsigned changes = 0;
  for (unsigned at = 0; at < CHECKED; at++)
    changes += ((uintptr_t)blocks[at] ^ (uintptr_t)blocks[at + 1]) >> GRANULE_SHIFT != 0;
  return changes >= CHECKED / 4;
}

/* A block of a slab with one slot; found without data that may not be in the cache. */
struct scattered {
  size_t index;
  struct slab *slab;
};

static struct scattered fetch(uintptr_t block, const struct slab_shape *shape) {
  size_t granule = granule_of(block), slot = granule % GRANULES_PER_CHUNK;
  struct slab_chunk *chunk = slab_chunk_of(granule);
  size_t index = slab_block_index(shape, block % GRANULE_BYTES);
  PREFETCH(&chunk->slabs[slot].free_local);
  if (LIKELY(index < shape->capacity))
    PREFETCH(&slab_local_bits(chunk, (unsigned)slot, shape)[index / 64]);
  return (struct scattered){index, &chunk->slabs[slot]};
}

RESIDENT static unsigned give_group(struct owner *owner, unsigned class, void *const *blocks,
                                    struct counters *counters) {
  const struct slab_shape copy = slab_shapes[class], *shape = &copy;
  const uint32_t own = owner->tag | class;
  struct scattered group[GROUP_BLOCKS];
  int64_t given = 0;
  owner_set_spare(owner, class, true); /* a slab that is listed already is not placed */
  for (unsigned at = 0; at < GROUP_BLOCKS; at++) group[at] = fetch((uintptr_t)blocks[at], shape);
  for (unsigned at = 0; at < GROUP_BLOCKS; at++) {
    /* relaxed: it changes to or from the owner's only under the latch that this thread holds, as
     * slab->owner does. */
    bool is_given = load_relaxed(&group[at].slab->held_by) == own &&
                    group[at].index < shape->capacity &&
                    slab_put_index(group[at].slab, shape, group[at].index, owner);
    given += is_given;
    if (UNLIKELY(!is_given)) give_to_slab(owner, &blocks[at], 1, counters);
  }
  add_single_writer(&owner->bytes_out, -given * shape->block_bytes);
  return GROUP_BLOCKS;
}

/* Run by run, at least to the end of a group: a group is judged once. */
static unsigned give_runs(struct owner *owner, void *const *blocks, unsigned block_count,
                          struct counters *counters) {
  unsigned given = 0;
  while (given < GROUP_BLOCKS)
    given += give_to_slab(owner, blocks + given, block_count - given, counters);
  return given;
}

RESIDENT void batch_free(struct owner *owner, void **blocks, unsigned block_count,
                         struct counters *counters) {
  unsigned class = map_slab_class(owner_map_entry((uintptr_t)*blocks));
  bool may_scatter = owner && slots_of_class(class) == 1;
  for (unsigned given; block_count; blocks += given, block_count -= given) {
    if (!may_scatter || block_count < GROUP_BLOCKS)
      given = give_to_slab(owner, blocks, block_count, counters);
    else if (are_scattered(blocks))
      given = give_group(owner, class, blocks, counters);
    else
      given = give_runs(owner, blocks, block_count, counters);
  }
}
