/* src/slab/borrow: blocks and free slabs that wait in other owners' queues. */
#include "slab/borrow.h"

#include "owners.h"

enum { WANTED = 8 };

static void *blocks[WANTED];

static unsigned borrow(unsigned wanted) { return borrow_blocks(&mine, CLASS_4K, blocks, wanted); }

static void require_blocks_of(const struct slab *slab, unsigned first, unsigned count) {
  for (unsigned index = first; index < first + count; index++)
    REQUIRE(slab_of_block((uintptr_t)blocks[index]) == slab);
}

CHILD_TEST(take_what_came_back) {
  struct slab *slab = full_slab(&other, CLASS_4K);
  free_remotely(slab, 5);
  int64_t bytes_out = load_relaxed(&other.bytes_out);
  REQUIRE(borrow(3) == 3);
  require_blocks_of(slab, 0, 3);
  REQUIRE(load_relaxed(&slab->owner) == &other && slab->is_listed); /* with the other two */
  REQUIRE(load_relaxed(&other.bytes_out) == bytes_out - 2 * (int64_t)slab->block_bytes);
  REQUIRE(load_relaxed(&other.latch) == LATCH_FREE);
  require_laws(slab, slab->capacity - 2u);
}

/* Few came back to each. */
CHILD_TEST(gather) {
  struct slab *first = full_slab(&other, CLASS_4K), *second = full_slab(&other, CLASS_4K);
  free_remotely(second, 1);
  free_remotely(first, 2);
  REQUIRE(borrow(WANTED) == 3);
  require_blocks_of(first, 0, 2); /* queued last */
  require_blocks_of(second, 2, 1);
  REQUIRE(!first->is_listed && !second->is_listed);
  REQUIRE(borrow(WANTED) == 0);
}

/* Of wholly free slabs one is lent from; the others go to the pool, where they serve whole. */
CHILD_TEST(lend_from_one) {
  struct slab *first = full_slab(&other, CLASS_4K), *second = full_slab(&other, CLASS_4K);
  free_remotely(second, second->capacity);
  free_remotely(first, first->capacity);
  REQUIRE(borrow(2) == 2);
  require_blocks_of(first, 0, 2);
  REQUIRE(borrow(2) == 2 && !load_relaxed(&second->owner));
  require_blocks_of(first, 0, 2);
  REQUIRE(load_relaxed(&first->owner) == &other && first->is_listed);
}

/* What its owner freed is lent as well; what nobody has had stays the owner's. Before a slab is
 * made dozens are asked, the far ones if they idle. */
CHILD_TEST(leave_the_fresh) {
  static struct owner silent[20];
  for (unsigned index = 0; index < 20; index++) owner_register(&silent[index]);
  struct slab *freed = full_slab(&other, CLASS_4K);
  put_bits(freed, &other, 0, 7);
  mine.bins[CLASS_4K].current = owned_slab(&mine, CLASS_4K);
  REQUIRE(borrow(WANTED) == 0); /* it has fresh ones itself */
  mine.bins[CLASS_4K].current = NULL;
  REQUIRE(borrow(WANTED) == 0);
  os_fake.now_ns += route_p.idle_ns;
  REQUIRE(borrow(WANTED) == 3 && !freed->is_listed);
  struct slab *slab = owned_slab(&other, CLASS_4K); /* three blocks of it were out */
  REQUIRE(slab_take(slab, &other, blocks, 3) == 3);
  free_remotely(slab, 2);
  REQUIRE(borrow(WANTED) == 2 && slab->handed_out == 3);
  free_remotely(full_slab(&mine, CLASS_4K), 2); /* our own queue is the supply ladder's */
  REQUIRE(borrow(WANTED) == 0);
}

/* Four blocks of 80 bytes are five lines: only all four are lent. */
CHILD_TEST(lend_whole_lines) {
  enum { CLASS_80 = 5 };
  struct slab *slab = full_slab(&other, CLASS_80);
  slab_free_remote(slab, 0, 0x7F8, &other.counters); /* 3 to 10 */
  REQUIRE(class_bytes(CLASS_80) == 80 && borrow_blocks(&mine, CLASS_80, blocks, WANTED) == 4);
  for (unsigned index = 0; index < 4; index++)
    REQUIRE(slab_index_of(slab, (uintptr_t)blocks[index], "lend") == 7 - index);
  require_laws(slab, slab->capacity - 4u);
}

CHILD_TEST(respect_the_latch) {
  os_fake.is_multi_threaded = true;
  free_remotely(full_slab(&other, CLASS_4K), 2);
  store_relaxed(&other.latch, LATCH_OWN);
  REQUIRE(borrow(WANTED) == 0);
  store_relaxed(&other.latch, LATCH_FREE);
  store_relaxed(&other.state, OWNER_LOST);
  REQUIRE(borrow(WANTED) == 0 && load_relaxed(&other.latch) == LATCH_FREE);
  store_relaxed(&other.state, OWNER_RUNNING);
  REQUIRE(borrow(WANTED) == 2);
}
