/* owners.h: two owners without heaps, for tests of what lies below the heaps. */
#ifndef OWNERS_H
#define OWNERS_H

#include "child.h"
#include "config/options.h"
#include "fake/os_fake.h"
#include "slab/adopt.h"
#include "slab/pending.h"
#include "slab/slab.h"

enum { CLASS_64 = 4, CLASS_4K = 28, OWNER_BLOCKS_MAX = 65536 / 64 };

static struct owner mine = {.number = 1, .tag = 1u << MAP_TAG_SHIFT};
static struct owner other = {.number = 2, .tag = 2u << MAP_TAG_SHIFT};

static inline void owners_set_up(void) {
  REQUIRE(window_init(UINT64_C(64) << 30));
  /* As of threads that have been in a slow path. */
  store_relaxed(&mine.slow_paths, 1);
  store_relaxed(&other.slow_paths, 1);
  owner_register(&mine);
  owner_register(&other);
}
BEFORE(child) { owners_set_up(); }

static inline uint64_t counted(const struct owner *owner, enum counter which) {
  return load_relaxed(&owner->counters.value[which]);
}

static inline struct slab *owned_slab(struct owner *owner, unsigned class) {
  struct slab *slab = acquire_slab(class, POOL_ALL, &owner->counters);
  REQUIRE(slab);
  slab_own(slab, owner);
  return slab;
}

/* A slab all of whose blocks are taken: live, as far as it knows. */
static inline struct slab *full_slab(struct owner *owner, unsigned class) {
  void *blocks[OWNER_BLOCKS_MAX];
  struct slab *slab = owned_slab(owner, class);
  REQUIRE(slab_take(slab, owner, blocks, slab->capacity) == slab->capacity);
  return slab;
}

/* The owner frees blocks of one bitmap word. */
static inline void put_bits(struct slab *slab, struct owner *owner, unsigned word, uint64_t bits) {
  void *blocks[64];
  unsigned count = 0;
  for (; bits; bits &= bits - 1) {
    size_t index = word * 64 + lowest_bit(bits);
    blocks[count++] = (void *)(slab->base + index * slab->block_bytes);
  }
  REQUIRE(slab_put(slab, owner, blocks, count) == count);
}

/* Another thread frees the first `count` blocks of it, at most a word's. */
static inline void free_remotely(struct slab *slab, unsigned count) {
  slab_free_remote(slab, 0, low_bits(count), &other.counters);
}

static inline unsigned queued_in(const struct owner *owner, unsigned class) {
  unsigned count = 0;
  const struct slab *slab = owner->bins[class].taken;
  for (; slab; slab = load_relaxed(&slab->pending_next)) count++;
  for (slab = load_relaxed(&owner->pending[class]); slab; count++)
    slab = load_relaxed(&slab->pending_next);
  return count;
}

/* A round's look at all owners; true when some may idle later, or have pages that are too young. */
static inline bool sweep_owners(uint32_t decay_ms) {
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = decay_ms,
                        .page_decay_ms = decay_ms,
                        .calls_left = SIZE_MAX,
                        .slabs_left = SIZE_MAX};
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    purge.work_remains |= !owner_sweep(owner, os_now_ns(), &purge);
  return purge.work_remains;
}

/* The laws of slab/record.h. */
static inline void require_laws(const struct slab *slab, unsigned live) {
  unsigned free_local = 0;
  for (unsigned word = 0; word < slab->word_count; word++) {
    uint64_t local = slab->local[word], remote = load_relaxed(&slab->remote[word]);
    REQUIRE((local & remote) == 0);
    if (word < slab->first_word) REQUIRE(local == 0);
    for (unsigned block = slab->handed_out; block < slab->capacity; block++)
      if (block / 64 == word) REQUIRE(local >> block % 64 & 1);
    free_local += count_bits(local);
  }
  REQUIRE(slab->free_local == free_local);
  REQUIRE(free_local + slab_count_remote(slab) + live == slab->capacity);
}

#endif
