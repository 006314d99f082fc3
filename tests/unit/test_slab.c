/* src/slab/slab: the blocks of one slab. */
#include "owners.h"
#include "report/report.h"

CHILD_TEST(take_in_order) {
  struct slab *slab = owned_slab(&mine, CLASS_64);
  void *blocks[100];
  REQUIRE(slab_take(slab, &mine, blocks, 100) == 100);
  for (unsigned index = 0; index < 100; index++) /* the last one has the lowest address */
    REQUIRE((uintptr_t)blocks[index] == slab->base + (99 - index) * 64);
  require_laws(slab, 100);
  REQUIRE(load_relaxed(&mine.bytes_out) == 100 * 64);
  REQUIRE(owner_map_entry(slab->base + 77) == map_entry(mine.tag, CLASS_64));
}

CHILD_TEST(take_the_rest) {
  struct slab *slab = owned_slab(&mine, CLASS_4K);
  void *blocks[64];
  REQUIRE(slab_take(slab, &mine, blocks, 10) == 10);
  REQUIRE(slab_take(slab, &mine, blocks, 64) == slab->capacity - 10u);
  REQUIRE(slab_take(slab, &mine, blocks, 64) == 0);
  require_laws(slab, slab->capacity);
  put_bits(slab, &mine, 0, UINT64_C(1) << 3);
  require_laws(slab, slab->capacity - 1u);
  REQUIRE(slab->is_listed && mine.bins[CLASS_4K].partial == slab);
  REQUIRE(slab_take(slab, &mine, blocks, 64) == 1 && (uintptr_t)blocks[0] == slab->base + 3 * 4096);
}

/* What begins with this slab's blocks, in words in turn, is put; what does not stays. */
CHILD_TEST(put_the_first) {
  struct slab *slab = full_slab(&mine, CLASS_64), *next = full_slab(&mine, CLASS_64);
  uintptr_t base = slab->base;
  void *blocks[] = {(void *)(base + 70 * 64), (void *)(base + 3 * 64), (void *)(base + 71 * 64),
                    (void *)(base + 4 * 64),  (void *)next->base,      (void *)base};
  REQUIRE(slab_put(slab, &mine, blocks, 6) == 4);
  REQUIRE(slab->local[0] == 0x18 && slab->local[1] == 0xc0 && slab->first_word == 0);
  REQUIRE(slab_put(slab, &mine, blocks + 4, 2) == 0 && slab_put(slab, &mine, blocks, 0) == 0);
  REQUIRE(slab_put(next, &mine, blocks + 4, 2) == 1);
  require_laws(slab, slab->capacity - 4u);
  require_laws(next, next->capacity - 1u);
  blocks[0] = (void *)(base + 6); /* inside a block */
  REQUIRE(slab_put(slab, &mine, blocks, 1) == 0);
}

/* One by one it comes to the same, from the first block, which lists the slab, to the last. */
CHILD_TEST(put_one_by_one) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  REQUIRE(slab_put_one(slab, CLASS_64, 70, &mine) && slab_put_one(slab, CLASS_64, 3, &mine));
  REQUIRE(slab->local[0] == 8 && slab->local[1] == 64 && slab->first_word == 0);
  REQUIRE(slab->is_listed && mine.bins[CLASS_64].partial == slab);
  require_laws(slab, slab->capacity - 2u);
  REQUIRE(!slab_put_one(slab, CLASS_64, 70, &mine)); /* it is free already */
  require_laws(slab, slab->capacity - 2u);
  for (unsigned index = 0; index < slab->capacity; index++)
    if (index != 3 && index != 70) REQUIRE(slab_put_one(slab, CLASS_64, index, &mine));
  require_laws(slab, 0);
  REQUIRE(mine.bins[CLASS_64].free_count == 1 && load_relaxed(&mine.bytes_out) == 0);
}

/* Where misuse is let pass: what was free already changes no sum. */
CHILD_TEST(put_twice) {
  misuse_action = MISUSE_WARN;
  struct slab *slab = full_slab(&mine, CLASS_64);
  for (unsigned index = 0; index < slab->capacity; index++)
    REQUIRE(slab_put_one(slab, CLASS_64, index, &mine));
  REQUIRE(slab->is_listed && mine.bins[CLASS_64].free_count == 1);
  REQUIRE(slab_put(slab, &mine, (void *[]){(void *)slab->base}, 1) == 1);
  REQUIRE(mine.bins[CLASS_64].free_count == 1 && owner_is_valid(&mine));
}

/* Blocks that came back go first; fresh ones are handed out few at a time. */
CHILD_TEST(take_few_fresh) {
  struct slab *slab = owned_slab(&mine, CLASS_64);
  void *blocks[500];
  REQUIRE(slab_reusable(slab) == 0 && slab_batch(slab, &mine, 500) == 64 &&
          slab_batch(slab, &mine, 3) == 3);
  REQUIRE(slab_take(slab, &mine, blocks, 200) == 200 && slab->handed_out == 200);
  put_bits(slab, &mine, 0, low_bits(64));
  put_bits(slab, &mine, 1, low_bits(6));
  REQUIRE(slab_reusable(slab) == 70 && slab_batch(slab, &mine, 500) == 70);
  REQUIRE(slab_take(slab, &mine, blocks, 60) == 60 && slab->handed_out == 200);
  REQUIRE(slab_reusable(slab) == 10 &&
          slab_batch(slab, &mine, 500) == 10); /* no fresh ones with them */
  REQUIRE(slab_take(slab, &mine, blocks, 10) == 10 && slab_batch(slab, &mine, 500) == 64);
  REQUIRE(slab_take(slab, &mine, blocks, 64) == 64 && slab->handed_out == 264);
  require_laws(slab, 264);
}

CHILD_TEST(collect) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  slab_free_remote(slab, 0, 0xf0, &other.counters);
  slab_free_remote(slab, 5, 1, &other.counters);
  require_laws(slab, slab->capacity - 5u);
  REQUIRE(slab->free_local == 0 && slab_count_remote(slab) == 5);
  REQUIRE(counted(&other, COUNT_pending_enqueued) == 1); /* one edge, however many frees */
  REQUIRE(slab_collect(slab, &mine) == 5 && slab_count_remote(slab) == 0);
  REQUIRE(slab_collect(slab, &mine) == 0);
  require_laws(slab, slab->capacity - 5u);
}

CHILD_TEST(release) {
  struct slab *slab = owned_slab(&mine, CLASS_64);
  store_relaxed(&slab->queued, 1); /* somebody is queueing it at this moment */
  REQUIRE(!slab_try_release(slab, &mine));
  REQUIRE(load_relaxed(&slab->owner) == &mine && load_relaxed(&slab->state) == SLOT_ACTIVE);
  store_relaxed(&slab->queued, 0);
  mine.bins[CLASS_64].current = slab;
  REQUIRE(slab_try_release(slab, &mine));
  REQUIRE(!load_relaxed(&slab->owner) && load_relaxed(&slab->state) == SLOT_EMPTY);
  REQUIRE(!load_relaxed(&slab->queued) && !mine.bins[CLASS_64].current);
  REQUIRE(!map_entry_is_live(owner_map_entry(slab->base)));
}

CHILD_TEST(lists) {
  struct slab *slabs[5];
  for (unsigned index = 0; index < 5; index++) {
    slabs[index] = full_slab(&mine, CLASS_64);
    put_bits(slabs[index], &mine, 0, 1);
  }
  struct bin *bin = &mine.bins[CLASS_64];
  REQUIRE(bin->partial == slabs[4] && bin->partial_count == 5); /* last freed into first */
  slab_unlist(slabs[2], &mine);
  slab_unlist(slabs[4], &mine);
  slab_unlist(slabs[0], &mine);
  REQUIRE(bin->partial == slabs[3] && slabs[3]->next == slabs[1] && !slabs[1]->next);
  REQUIRE(slabs[1]->previous == slabs[3] && bin->partial_count == 2);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void free_twice(const void *argument) {
  const char *how = argument;
  owners_set_up();
  struct slab *slab = full_slab(&mine, CLASS_64);
  if (how[0] == 'l')
    put_bits(slab, &mine, 1, 4);
  else
    slab_free_remote(slab, 1, 4, &other.counters);
  if (how[1] == 'l')
    put_bits(slab, &mine, 1, 6);
  else
    slab_free_remote(slab, 1, 6, &other.counters);
  slab_collect(slab, &mine);
}

TEST(double_free) {
  static const char *const said[] = {
      "hakmem: double free of 0x",
      ": the block of 64 bytes is free already (tiny class 4, of thread ", NULL};
  static const char *const ways[] = {"ll", "rr", "lr",
                                     "rl"}; /* by the owner or by others, in turn */
  for (unsigned way = 0; way < 4; way++) assert_child_reports(free_twice, ways[way], said);
}

static void index_of(const void *argument) {
  const size_t *offset = argument;
  owners_set_up();
  struct slab *slab =
      full_slab(&mine, class_of_size(12288)); /* 131072 bytes hold ten, and a tail */
  REQUIRE(slab_index_of(slab, slab->base + 2 * (size_t)slab->block_bytes, "free") == 2);
  slab_index_of(slab, slab->base + *offset, "realloc");
}

TEST(pointers_into_a_slab) {
  static const char *const inside[] = {"hakmem: misaligned realloc of 0x",
                                       ": inside the block of 12288 bytes at 0x", "(mid class ",
                                       NULL};
  static const char *const behind[] = {"hakmem: invalid realloc of 0x",
                                       ": no block lives there (class none)", NULL};
  static const size_t offsets[] = {1, 16, 12287, 12289, 10 * 12288, 10 * 12288 + 16};
  for (unsigned index = 0; index < 4; index++)
    assert_child_reports(index_of, &offsets[index], inside);
  for (unsigned index = 4; index < 6; index++)
    assert_child_reports(index_of, &offsets[index], behind);
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { STEPS = 40000 };

/* Takes, puts, remote frees and collects in any order: no block is handed out while it lives. */
CHILD_TESTS(model, unsigned, class, 0, 1, 3, CLASS_64, 20, CLASS_4K, FITTED_CLASS_FIRST - 1) {
  static bool is_live[8192];
  void *blocks[64];
  uint64_t random = 99 + class;
  unsigned live = 0;
  owners_set_up();
  struct slab *slab = owned_slab(&mine, class);
  mine.bins[class].current = slab; /* it stays, even when wholly free */
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned choice = (unsigned)random_below(&random, 8);
    if (choice < 3) {
      unsigned taken = slab_take(slab, &mine, blocks, 1 + (unsigned)random_below(&random, 64));
      for (unsigned index = 0; index < taken; index++) {
        unsigned number = slab_index_of(slab, (uintptr_t)blocks[index], "free");
        REQUIRE(!is_live[number]);
        is_live[number] = true;
      }
      live += taken;
    } else if (choice < 7) {
      unsigned word = (unsigned)random_below(&random, slab->word_count);
      uint64_t bits = random_next(&random) & random_next(&random), freed = 0;
      for (; bits; bits &= bits - 1) {
        unsigned number = word * 64 + lowest_bit(bits);
        if (number >= slab->capacity || !is_live[number]) continue;
        is_live[number] = false;
        freed |= bits & -bits;
      }
      live -= count_bits(freed);
      if (freed && choice < 5) put_bits(slab, &mine, word, freed);
      if (freed && choice >= 5) slab_free_remote(slab, word, freed, &other.counters);
    } else {
      slab_collect(slab, &mine);
    }
    require_laws(slab, live);
  }
}
