#include "slab/batch_free.h"

#include <string.h>

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

/* A slab with a live block has an owner: this one is in the pool, or none begins there. */
COLD static void fail(const struct slab *slab, uintptr_t block) {
  unsigned index = slab_index_of(slab, block, "free");
  if (index != NO_BLOCK) slab_fail_double_free(slab, index / 64, UINT64_C(1) << index % 64);
}

/* Gives back the first blocks, up to the first of another slab. */
RESIDENT static unsigned give_to_slab(struct owner *owner, void *const *blocks,
                                      unsigned block_count, struct counters *counters) {
  struct slab *slab = slab_of_block((uintptr_t)*blocks);
  /* relaxed: it changes to or from `owner` only under the latch that this thread holds. */
  struct owner *of = load_relaxed(&slab->owner);
  unsigned given = 0;
  if (LIKELY(of != NULL))
    given = of == owner ? slab_put(slab, owner, blocks, block_count)
                        : give_remote(slab, blocks, block_count, counters);
  if (LIKELY(given)) return given;
  fail(slab, (uintptr_t)*blocks);
  return 1; /* left alone */
}

/* Blocks freed in random order: many have another slab than the one before. */
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

/* ---- where the class has few slabs: sums and lists follow once for each ---------------------- */

enum { TALLIED_SLABS = 64, BLOCKS_A_SLAB_MIN = 2 };
struct tallied {
  struct slab *slab;
  uint64_t *local;
  size_t blocks, first_word;
};
struct tally {
  struct owner *owner;
  struct slab_shape shape;
  uint32_t held_by;
  uint64_t places;                   /* that have had an entry */
  uintptr_t granules[TALLIED_SLABS]; /* by their lowest bits; 0: no entry */
  struct tallied entries[TALLIED_SLABS];
};

static size_t place_of(uintptr_t block) { return (block >> GRANULE_SHIFT) % TALLIED_SLABS; }

/* Bits were set at once; sums and lists follow. */
static void settle(struct tally *tally, size_t place) {
  const struct tallied *entry = &tally->entries[place];
  bool has_some = tally->granules[place] && entry->blocks;
  tally->granules[place] = 0;
  if (!has_some) return;
  unsigned before = entry->slab->free_local;
  slab_note_freed(entry->slab, tally->owner, (unsigned)entry->blocks, tally->shape.block_bytes);
  slab_note_word(entry->slab, (unsigned)entry->first_word);
  if (before == 0 || entry->slab->free_local == tally->shape.capacity)
    slab_place(entry->slab, tally->owner);
}

/* False for another owner's slab. */
static bool open_place(struct tally *tally, size_t place, uintptr_t block) {
  struct slab *slab = slab_of_granule(granule_of(block));
  settle(tally, place);
  /* relaxed: as in give_group */
  if (load_relaxed(&slab->held_by) != tally->held_by) return false;
  tally->granules[place] = block >> GRANULE_SHIFT;
  tally->places |= UINT64_C(1) << place;
  tally->entries[place] =
      (struct tallied){.slab = slab, .local = slab->local, .first_word = slab->first_word};
  return true;
}

INLINE bool tally_block(struct tally *tally, size_t capacity, uintptr_t block) {
  size_t place = place_of(block);
  if (UNLIKELY(tally->granules[place] != block >> GRANULE_SHIFT) &&
      !open_place(tally, place, block))
    return false;
  struct tallied *entry = opaque_pointer(&tally->entries[place]); /* computed once */
  size_t index = slab_block_index(&tally->shape, block % GRANULE_BYTES), word = index / 64;
  if (UNLIKELY(index >= capacity)) return false;
  uint64_t bits = entry->local[word];
  if (UNLIKELY(add_bit(&bits, index))) return false;
  entry->local[word] = bits;
  entry->blocks++;
  if (UNLIKELY(word < entry->first_word)) entry->first_word = word;
  return true;
}

RESIDENT NOINLINE static unsigned give_tallied(struct owner *owner, unsigned class,
                                               void *const *blocks, unsigned block_count,
                                               struct counters *counters) {
  struct tally tally;
  tally.owner = owner;
  tally.shape = slab_shapes[class];
  tally.held_by = map_entry(owner->tag, class);
  tally.places = 0;
  memset(tally.granules, 0, sizeof tally.granules);
  const size_t capacity = tally.shape.capacity;
  for (unsigned at = 0; at < block_count; at++) {
    if (LIKELY(tally_block(&tally, capacity, (uintptr_t)blocks[at]))) continue;
    give_to_slab(owner, &blocks[at], 1, counters);
  }
  for (; tally.places; tally.places &= tally.places - 1) settle(&tally, lowest_bit(tally.places));
  return block_count;
}

/* ---- where it has many: group by group, with their data prefetched --------------------------- */

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
  const uint32_t own = map_entry(owner->tag, class);
  struct scattered group[GROUP_BLOCKS];
  int64_t given = 0;
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

INLINE unsigned give_scattered(struct owner *owner, unsigned class, void *const *blocks,
                               unsigned block_count, struct counters *counters) {
  unsigned slabs = load_relaxed(&owner->bins[class].slab_count);
  owner_set_spare(owner, class, true); /* a slab that is listed already is not placed */
  if (!slabs || slabs > TALLIED_SLABS || slabs * BLOCKS_A_SLAB_MIN > block_count)
    return give_group(owner, class, blocks, counters);
  return give_tallied(owner, class, blocks, block_count, counters);
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
      given = give_scattered(owner, class, blocks, block_count, counters);
    else
      given = give_runs(owner, blocks, block_count, counters);
  }
}
