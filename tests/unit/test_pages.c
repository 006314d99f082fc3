/* src/slab/pages: which pages of a slab go back, when, and what is known of them afterwards. */
#include "slab/pages.h"

#include "owners.h"

enum {
  CLASS_96 = 6,
  CLASS_32K = FITTED_CLASS_FIRST - FILLING_CLASS_COUNT - 1,
  PAGE = 4096,
  PAGE_BLOCKS = 64,
  DECAY = 1000
};

static uint64_t given_bytes(void) { return load_relaxed(&totals.given_page_bytes); }
static uint64_t refaulted_bytes(void) { return load_relaxed(&totals.refaulted_bytes); }
static uint64_t calls(void) { return load_relaxed(&totals.os_purges); }

/* True when something is left. */
static bool look_within(size_t slabs, size_t most_calls) {
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .page_decay_ms = DECAY,
                        .calls_left = most_calls,
                        .slabs_left = slabs};
  pages_scan(&mine, &purge, 0);
  return purge.work_remains;
}

static bool look(void) { return look_within(SIZE_MAX, SIZE_MAX); }

static bool look_after_ms(uint64_t milliseconds) {
  os_fake_advance_ms(milliseconds);
  return look();
}

static void put_blocks(struct slab *slab, unsigned first, unsigned count) {
  for (unsigned index = first; index < first + count; index++)
    put_bits(slab, &mine, index / 64, UINT64_C(1) << index % 64);
}

/* Whose first pages are free. */
static struct slab *slab_with_free_pages(unsigned pages) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  put_blocks(slab, 0, pages * PAGE_BLOCKS);
  return slab;
}

CHILD_TEST(give_what_is_old) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  memset((void *)slab->base, 1, GRANULE_BYTES);
  /* The first page lacks a block, the next two are free, the fourth lacks one. */
  put_blocks(slab, 0, PAGE_BLOCKS - 1);
  put_blocks(slab, PAGE_BLOCKS, 3 * PAGE_BLOCKS - 1);
  REQUIRE(look() && slab->waiting_pages == 6);
  REQUIRE(look_after_ms(DECAY - 1) && given_bytes() == 0);
  REQUIRE(!look_after_ms(1) && given_bytes() == 2 * PAGE && calls() == 1);
  REQUIRE(slab->given_pages == 6 && !slab->waiting_pages);
  const char *bytes = (const char *)slab->base;
  REQUIRE(bytes[PAGE - 1] == 1 && !bytes[PAGE] && !bytes[3 * PAGE - 1] && bytes[3 * PAGE] == 1);
  REQUIRE(!look_after_ms(DECAY) && calls() == 1);
  require_laws(slab, slab->capacity - (4 * PAGE_BLOCKS - 2));

  put_blocks(slab, PAGE_BLOCKS - 1,
             1); /* now on both sides: one call, what is in between counted once */
  put_blocks(slab, 4 * PAGE_BLOCKS - 1, 1);
  REQUIRE(look() && slab->waiting_pages == 9);
  REQUIRE(!look_after_ms(DECAY) && calls() == 2 && given_bytes() == 4 * PAGE);
  REQUIRE(slab->given_pages == 15);
}

/* More is free than may be: pages go before they are old, where a call gives enough of them. */
CHILD_TEST(give_early_what_pays) {
  struct slab *slab = slab_with_free_pages(2);
  for (unsigned pages = 2; pages <= 3; put_blocks(slab, pages++ * PAGE_BLOCKS, PAGE_BLOCKS)) {
    struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                          .page_decay_ms = DECAY,
                          .idle_bytes = 1,
                          .early_run_bytes = 3 * PAGE,
                          .calls_left = SIZE_MAX,
                          .slabs_left = SIZE_MAX};
    slab->waiting_pages = 0; /* to be looked at once more */
    pages_scan(&mine, &purge, 0);
    REQUIRE(purge.work_remains == (pages == 2));
    REQUIRE(given_bytes() == (pages == 2 ? 0 : 3 * PAGE));
  }
  struct slab *last = slab_with_free_pages(1);
  REQUIRE(look() && !look_after_ms(DECAY) && last->given_pages == 1);
}

/* Free blocks are taken again: the slab is in use, all of it. */
CHILD_TEST(begin_anew_when_taken_from) {
  struct slab *slab = slab_with_free_pages(3);
  void *block;
  REQUIRE(look() && slab->waiting_pages == 7);
  os_fake_advance_ms(DECAY - 1);
  REQUIRE(slab_take(slab, &mine, &block, 1) == 1 && !slab->has_free_pages);
  REQUIRE(look_after_ms(1) && slab->waiting_pages == 6);
  REQUIRE(look_after_ms(DECAY - 1) && given_bytes() == 0);
  put_blocks(slab, 0, 1); /* a free does not matter */
  REQUIRE(!look_after_ms(1) && given_bytes() == 2 * PAGE);
}

CHILD_TEST(note_what_is_used_again) {
  struct slab *slab = slab_with_free_pages(3);
  void *blocks[PAGE_BLOCKS + 1];
  look();
  look_after_ms(DECAY);
  REQUIRE(slab->given_pages == 7 && refaulted_bytes() == 0);
  REQUIRE(slab_take(slab, &mine, blocks, PAGE_BLOCKS + 1) == PAGE_BLOCKS + 1); /* of two pages */
  REQUIRE(slab->given_pages == 4 && slab->has_free_pages && refaulted_bytes() == 2 * PAGE);
  for (unsigned taken = 1; taken < 2 * PAGE_BLOCKS; taken++)
    slab_take_at_random(slab, &mine, taken * UINT64_C(0x9e3779b97f4a7c15));
  REQUIRE(!slab->has_free_pages && refaulted_bytes() == 3 * PAGE);
  require_laws(slab, slab->capacity);
}

/* Blocks that cross the border of two pages keep both. */
CHILD_TEST(keep_crossed_pages) {
  struct slab *slab = full_slab(&mine, CLASS_96);
  REQUIRE(slab->block_bytes == 96);
  unsigned crossing = PAGE / 96;
  put_blocks(slab, 0, crossing);
  put_blocks(slab, crossing + 1, 2 * PAGE / 96 - crossing);
  REQUIRE(!look());
  put_blocks(slab, crossing, 1);
  REQUIRE(look() && slab->waiting_pages == 3);
}

/* The last page ends after the last block; and as many pages as a slab may have. */
CHILD_TEST(know_the_last_page) {
  struct slab *slab = full_slab(&mine, CLASS_96);
  unsigned first = 14 * PAGE / 96;
  put_blocks(slab, first, slab->capacity - first);
  look();
  REQUIRE(slab->waiting_pages == UINT64_C(3) << 14);

  slab = full_slab(&mine, CLASS_32K);
  REQUIRE(slab->slot_count == 4);
  put_blocks(slab, 1, slab->capacity - 1u);
  look();
  REQUIRE(slab->waiting_pages == ~UINT64_C(0) << slab->block_bytes / PAGE);
}

/* Remotely freed blocks are free only when they have been collected. */
CHILD_TEST(wait_for_remote_blocks) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  free_remotely(slab, PAGE_BLOCKS);
  REQUIRE(!look());
  REQUIRE(slab_collect(slab, &mine) == PAGE_BLOCKS);
  REQUIRE(look() && slab->waiting_pages == 1);
}

static unsigned count_waiting(struct slab *const *slabs, unsigned count) {
  unsigned waiting = 0;
  for (unsigned index = 0; index < count; index++) waiting += slabs[index]->waiting_pages != 0;
  return waiting;
}

CHILD_TEST(go_on_where_it_ended) {
  enum { SLABS = 5 };
  struct slab *slabs[SLABS];
  for (unsigned index = 0; index < SLABS; index++) slabs[index] = slab_with_free_pages(1);
  REQUIRE(look_within(2, SIZE_MAX) && count_waiting(slabs, SLABS) == 2);
  struct slab *next = mine.page_cursor; /* leaves the list meanwhile */
  void *blocks[PAGE_BLOCKS];
  REQUIRE(slab_take(next, &mine, blocks, PAGE_BLOCKS) == PAGE_BLOCKS);
  slab_unlist(next, &mine);
  REQUIRE(mine.page_cursor && mine.page_cursor != next);
  REQUIRE(look_within(2, SIZE_MAX) && count_waiting(slabs, SLABS) == 4);
  os_fake_advance_ms(DECAY);
  for (unsigned turn = 0; turn < 3; turn++) look_within(2, SIZE_MAX);
  REQUIRE(given_bytes() == 4 * PAGE);
}

CHILD_TEST(give_little_at_a_time) {
  struct slab *slab = full_slab(&mine, CLASS_64);
  for (unsigned page = 0; page < 6; page += 2) put_blocks(slab, page * PAGE_BLOCKS, PAGE_BLOCKS);
  look();
  os_fake_advance_ms(DECAY);
  REQUIRE(look_within(SIZE_MAX, 2) && calls() == 2 && given_bytes() == 2 * PAGE);
  REQUIRE(!look_within(SIZE_MAX, 2) && calls() == 3 && given_bytes() == 3 * PAGE);
}

/* Locked pages stay, and are not tried again before they have been used. */
CHILD_TEST(bear_a_refusal) {
  struct slab *slab = slab_with_free_pages(1);
  look();
  os_fake_fail(1u << OS_CALL_PURGE, 1, 1);
  REQUIRE(!look_after_ms(DECAY) && given_bytes() == 0);
  REQUIRE(!look_after_ms(DECAY) && given_bytes() == 0 &&
          load_relaxed(&os_fake.calls[OS_CALL_PURGE]) == 1);
  void *block;
  REQUIRE(slab_take(slab, &mine, &block, 1) == 1);
  put_blocks(slab, 0, 1);
  REQUIRE(look() && !look_after_ms(DECAY) && given_bytes() == PAGE);
}

/* An idle thread has had no use for them for as long. */
CHILD_TEST(take_from_who_idles) {
  slab_with_free_pages(1);
  REQUIRE(sweep_owners(DECAY) && given_bytes() == 0);
  os_fake_advance_ms(DECAY);
  REQUIRE(!sweep_owners(DECAY) && given_bytes() == PAGE);
  REQUIRE(load_relaxed(&mine.state) == OWNER_DORMANT && load_relaxed(&mine.latch) == 0);
}

/* A new thread may come for them at any moment. */
CHILD_TEST(wait_for_who_ended) {
  slab_with_free_pages(1);
  owner_park(&mine);
  REQUIRE(sweep_owners(DECAY) && given_bytes() == 0);
  os_fake_advance_ms(DECAY);
  REQUIRE(!sweep_owners(DECAY) && given_bytes() == PAGE);
}

/* Pages are the slab's: its new owner finds them as they are. */
CHILD_TEST(move_with_the_slab) {
  struct slab *slab = slab_with_free_pages(2);
  look();
  owner_park(&mine);
  REQUIRE(adopt_from_ended(&other, CLASS_64) == slab);
  REQUIRE(mine.page_cursor == NULL && slab->waiting_pages == 3);
  void *block;
  REQUIRE(slab_take(slab, &other, &block, 1) == 1 && !slab->has_free_pages);
}

/* Released and taken again, a slab knows nothing of it. */
CHILD_TEST(forget_when_released) {
  struct slab *slab = slab_with_free_pages(1);
  look();
  look_after_ms(DECAY);
  put_blocks(slab, PAGE_BLOCKS, slab->capacity - PAGE_BLOCKS);
  look();
  REQUIRE(slab->given_pages == 1 && slab->waiting_pages);
  owner_release_free_slabs(&mine, SIZE_MAX);
  REQUIRE(load_relaxed(&slab->owner) == NULL && !slab->has_free_pages);
  REQUIRE(!slab->given_pages && !slab->waiting_pages && refaulted_bytes() == 0);
}
