/* src/slab/adopt: an owner's own visit to its slabs is bounded, and finds wholly free ones without
 * a walk. */
#include "owners.h"

enum { SLABS = 600, VISITED = 512 };

static struct slab *slabs[SLABS];

static const struct bin *bin(void) { return &mine.bins[CLASS_4K]; }

/* All of them listed: the last one has `blocks` free, the others one. */
static void list_slabs(uint64_t blocks) {
  for (unsigned index = 0; index < SLABS; index++) {
    slabs[index] = full_slab(&mine, CLASS_4K);
    put_bits(slabs[index], &mine, 0, index ? 1 : blocks);
  }
}

static uint64_t all_blocks(void) { return low_bits(slab_shapes[CLASS_4K].capacity); }

CHILD_TEST(release_behind_many) {
  list_slabs(all_blocks());
  REQUIRE(bin()->free_count == 1 && bin()->partial->previous == slabs[0]);
  REQUIRE(owner_drain_all(&mine, VISITED) == VISITED - 1);
  REQUIRE(!bin()->free_count && !load_relaxed(&slabs[0]->owner));
  REQUIRE(bin()->partial->previous == slabs[1] && owner_is_valid(&mine));
}

/* Whatever was freed, and taken, in between. */
CHILD_TEST(keep_free_ones_last) {
  list_slabs(1);
  for (unsigned index = 100; index < 105; index++) {
    put_bits(slabs[index], &mine, 0, all_blocks() & ~UINT64_C(1));
    REQUIRE(bin()->partial->previous == slabs[index] && bin()->free_count == index - 99);
    REQUIRE(bin()->partial == slabs[SLABS - 1] && owner_is_valid(&mine));
  }
  slab_unlist(slabs[102], &mine);
  slab_unlist(slabs[104], &mine);
  REQUIRE(bin()->partial->previous == slabs[103] && !slabs[103]->next && owner_is_valid(&mine));
  slab_list(slabs[102], &mine);
  REQUIRE(bin()->partial->previous == slabs[102] && bin()->free_count == 4);
  REQUIRE(owner_drain_all(&mine, 3) == 0);
  REQUIRE(bin()->free_count == 1 && bin()->partial->previous == slabs[100]);
  REQUIRE(owner_drain_all(&mine, 3) == 2 && !bin()->free_count && owner_is_valid(&mine));
  REQUIRE(bin()->partial_count == SLABS - 5);
}

/* The last one that is listed, too. */
CHILD_TEST(release_all) {
  for (unsigned index = 0; index < 3; index++) {
    struct slab *slab = full_slab(&mine, CLASS_4K);
    put_bits(slab, &mine, 0, all_blocks());
  }
  REQUIRE(bin()->partial_count == 1 && bin()->partial->previous == bin()->partial);
  REQUIRE(owner_drain_all(&mine, SIZE_MAX) == SIZE_MAX - 1 && !bin()->partial);
  REQUIRE(owner_is_valid(&mine) && load_relaxed(&bin()->slab_count) == 0);
}

/* Remotely freed blocks are collected in parts; the rest waits in the queue. */
CHILD_TEST(drain_in_parts) {
  for (unsigned index = 0; index < SLABS; index++) {
    slabs[index] = full_slab(&mine, CLASS_4K);
    free_remotely(slabs[index], index % 2 ? 1 : slabs[index]->capacity);
  }
  REQUIRE(owner_drain_all(&mine, VISITED) == 0);
  unsigned queued = 0;
  for (unsigned index = 0; index < SLABS; index++)
    queued += slabs[index]->queued && load_relaxed(&slabs[index]->owner);
  REQUIRE(queued == SLABS - VISITED && load_relaxed(&mine.ready_mask));
  REQUIRE(owner_drain_all(&mine, VISITED) != 0 && !load_relaxed(&mine.ready_mask));
  REQUIRE(load_relaxed(&bin()->slab_count) == SLABS / 2 && owner_is_valid(&mine));
}

/* An owner that no longer runs gives up all, its current slabs as well. */
CHILD_TEST(release_current) {
  struct slab *slab = full_slab(&mine, CLASS_4K);
  mine.bins[CLASS_4K].current = slab;
  free_remotely(slab, slab->capacity);
  REQUIRE(owner_drain_all(&mine, SIZE_MAX) && load_relaxed(&slab->owner) == &mine);
  REQUIRE(owner_release_free_slabs(&mine, SIZE_MAX) && !load_relaxed(&slab->owner));
  REQUIRE(!bin()->current);
}

/* At once, although the thread that freed its last block queued it. */
CHILD_TEST(release_current_that_is_queued) {
  struct slab *slab = full_slab(&mine, CLASS_4K);
  mine.bins[CLASS_4K].current = slab;
  free_remotely(slab, slab->capacity);
  REQUIRE(load_relaxed(&slab->queued));
  REQUIRE(owner_release_free_slabs(&mine, SIZE_MAX) && !load_relaxed(&slab->owner));
  REQUIRE(!bin()->current && !load_relaxed(&bin()->slab_count) && owner_is_valid(&mine));
}
