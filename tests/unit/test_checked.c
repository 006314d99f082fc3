/* src/checked/checked and src/cache/quarantine: the hardened mode. */
#include "checked/checked.h"

#include "cache/quarantine.h"
#include "hardened/live.h"
#include "hardened/nothing.h"
#include "heaps.h"
#include "observe/report_glibc.h"
#include "slab/slab.h"

BEFORE(child) { start_hardened(1); }

CHILD_TEST(no_magazine_holds_a_block) {
  void *block = must_malloc(100);
  for (unsigned class = 0; class < FITTED_CLASS_FIRST; class ++)
    REQUIRE(magazine_capacity(&heap_of_thread->magazines[class]) == 0);
  REQUIRE(hak_malloc_usable_size(block) == 100); /* what was asked for, exactly */
  hak_free(block);
}

static void assert_all_zero(size_t smallest, size_t largest) {
  for (size_t size = smallest; size < largest; size = size * 3 / 2 + 1)
    for (unsigned round = 0; round < 20; round++) {
      unsigned char *bytes = must_malloc(size);
      for (size_t at = 0; at < size; at++) REQUIRE(bytes[at] == 0);
      memset(bytes, 0xee, size);
      hak_free(bytes);
    }
}

BARE_TEST(blocks_read_as_zero) {
  start_hardened(2);
  assert_all_zero(1, 200000);
}

/* The lower level leaves what is between the ends of blocks of more than 192 bytes in slabs. */
CHILD_TEST(small_and_large_blocks_read_as_zero) {
  assert_all_zero(1, WIPED_WHOLLY_BYTES - TRAILER_BYTES + 1);
  assert_all_zero(MID_MAX_BYTES, 200000);
  for (size_t size = 300; size < 200000; size = size * 3 / 2 + 1) {
    hak_free(memset(must_malloc(size), 0xee, size));
    unsigned char *bytes = hak_calloc(1, size);
    for (size_t at = 0; at < size; at++) REQUIRE(bytes[at] == 0);
    hak_free(bytes);
  }
}

/* Another class's blocks have their ends where those of this class had their middle: no end is
 * taken for damaged, and blocks read as zero. */
CHILD_TEST(slabs_change_their_class) {
  enum { BLOCKS = 2000, FILL = 0xee };
  static unsigned char *blocks[BLOCKS];
  uintptr_t end = 0, taken_again = 0;
  for (size_t size = 2500; size > 300; size = size * 2 / 3) {
    uintptr_t end_before = end;
    for (unsigned index = 0; index < BLOCKS; index++) {
      unsigned char *block = blocks[index] = hak_calloc(1, size);
      for (size_t at = 0; at < size; at++) REQUIRE(block[at] == 0);
      memset(block, FILL, size);
      taken_again += (uintptr_t)block < end_before;
      if ((uintptr_t)block > end) end = (uintptr_t)block;
    }
    for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
    hak_purge(false);
  }
  REQUIRE(taken_again >= BLOCKS);
  REQUIRE(os_fake.written_bytes == 0);
}

/* Each has an address of its own, which comes again as late as it can. */
CHILD_TEST(nothing_has_an_address) {
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    char *one = hak_aligned_alloc(alignment, 0), *other = hak_aligned_alloc(alignment, 0);
    REQUIRE(one && other && one != other);
    REQUIRE((uintptr_t)one % alignment == 0 && (uintptr_t)other % alignment == 0);
    REQUIRE(hak_malloc_usable_size(one) == 0 && hak_owns(one));
    hak_free(one);
    char *next = hak_aligned_alloc(alignment, 0);
    REQUIRE(next != one && next != other);
    hak_free(next);
    hak_free(other);
  }
  char *grown = hak_realloc(must_malloc(0), 100);
  REQUIRE(hak_malloc_usable_size(grown) == 100);
  hak_free(grown);
}

/* More than there are addresses for: then they are blocks, and come to the same end. */
CHILD_TEST(nothing_runs_out) {
  enum { BLOCKS = NOTHING_MAX + 1000 };
  void **blocks = must_malloc(BLOCKS * sizeof *blocks);
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(0);
  REQUIRE(nothing_covers((uintptr_t)blocks[0]) && !nothing_covers((uintptr_t)blocks[BLOCKS - 1]));
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  REQUIRE(nothing_covers((uintptr_t)must_malloc(0)));
}

/* Not in the order of addresses, and not the block that was freed last. */
CHILD_TEST(places_are_random) {
  enum { BLOCKS = 64 };
  uintptr_t blocks[BLOCKS];
  unsigned ascending = 0;
  for (unsigned index = 0; index < BLOCKS; index++) {
    blocks[index] = (uintptr_t)must_malloc(50);
    ascending += index && blocks[index] == blocks[index - 1] + 64;
  }
  REQUIRE(ascending < BLOCKS / 4);
  hak_free((void *)blocks[0]);
  REQUIRE((uintptr_t)must_malloc(50) != blocks[0]);
}

CHILD_TEST(quarantine_is_bounded) {
  for (unsigned round = 0; round < 1000; round++) hak_free(must_malloc(10000));
  const struct quarantine *quarantine = heap_of_thread->quarantine;
  REQUIRE(quarantine->bytes <= options.quarantine_bytes);
  REQUIRE(quarantine->bytes > options.quarantine_bytes / 2);
  for (unsigned round = 0; round < 50000; round++) hak_free(must_malloc(1));
  REQUIRE(load_relaxed(&quarantine->block_count) == QUARANTINE_BLOCKS);
  hak_purge(true);
  REQUIRE(load_relaxed(&quarantine->block_count) == 0 && quarantine->bytes == 0);
  REQUIRE(look().slab_bytes_out == 0);
}

CHILD_TEST(ranges_wait_and_go) {
  for (unsigned round = 0; round < 3 * QUARANTINE_RANGES; round++) hak_free(must_malloc(100000));
  REQUIRE(heap_of_thread->quarantine->range_count == QUARANTINE_RANGES);
  REQUIRE(look().big_live_bytes == 0);
  hak_purge(true);
  REQUIRE(heap_of_thread->quarantine->range_count == 0);
}

/* ---- realloc above 64 KiB -------------------------------------------------------------------- */

static bool is_open(const char *byte) {
  char content;
  return os_read_safely(&content, byte, sizeof content);
}

static size_t capacity_for(const char *block, size_t size) {
  return round_up((uintptr_t)block + size, os_page_bytes()) - (uintptr_t)block;
}

/* The block keeps its address and content; the page behind it is closed. */
static void resize_in_place(char *block, size_t before, size_t size) {
  uint64_t opened = load_relaxed(&os_fake.calls[OS_CALL_OPEN_PAGES]);
  uint64_t closed = load_relaxed(&os_fake.calls[OS_CALL_CLOSE_PAGES]);
  size_t kept = size < before ? size : before, capacity = capacity_for(block, size);
  memset(block, 5, before);
  REQUIRE(hak_realloc(block, size) == block && hak_malloc_usable_size(block) == size);
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_OPEN_PAGES]) - opened <= (size > before));
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_CLOSE_PAGES]) - closed <= (size < before ? 2 : 0));
  REQUIRE(block[0] == 5 && block[kept - 1] == 5);
  REQUIRE(is_open(block + capacity - 1) && !is_open(block + capacity));
}

CHILD_TEST(a_grown_block_grows_on_where_it_is) {
  enum { FROM = 70000, TO = 170000, STEP = 5000, WITHIN = 115000 };
  char *block = hak_realloc(must_malloc(1000), FROM);
  for (size_t size = FROM; size < TO; size += STEP) resize_in_place(block, size, size + STEP);
  resize_in_place(block, TO, FROM); /* the granule that is cut off waits */
  for (size_t size = FROM; size < WITHIN; size += STEP) resize_in_place(block, size, size + STEP);
  hak_free(block);
  REQUIRE(!is_open(block) && !is_open(block + TO - 1));
}

CHILD_TEST(alignment_is_kept) {
  for (size_t alignment = 8; alignment <= 4 << 20; alignment *= 2)
    for (size_t size = 1; size < 3 << 20; size = size * 5 + 3) {
      char *block = hak_aligned_alloc(alignment, size);
      REQUIRE(block && (uintptr_t)block % alignment == 0);
      REQUIRE(hak_malloc_usable_size(block) == size);
      memset(block, 1, size);
      hak_free(block);
    }
}

CHILD_TEST(resizing_notes_the_size) {
  char *block = must_malloc(100);
  memset(block, 5, 100);
  REQUIRE(hak_realloc(block, 90) == block && hak_malloc_usable_size(block) == 90);
  REQUIRE(hak_realloc(block, 104) == block && hak_malloc_usable_size(block) == 104);
  block = hak_realloc(block, 500);
  REQUIRE(block[89] == 5 && hak_malloc_usable_size(block) == 500);
  block = hak_realloc(block, 500000);
  REQUIRE(block[89] == 5 && hak_malloc_usable_size(block) == 500000);
  block = hak_realloc(block, 50);
  REQUIRE(block[49] == 5 && hak_malloc_usable_size(block) == 50);
  hak_free(block);
}

CHILD(overflow_beside_a_free) {
  enum { BLOCKS = 1000 };
  static char *blocks[BLOCKS];
  start_hardened(2);
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(56);
  blocks[500][56] ^= 1; /* its own free is far away */
  for (unsigned index = 0; index < BLOCKS; index++)
    if (blocks[index] == blocks[500] + 64) hak_free(blocks[index]);
}
TEST(a_neighbour_tells) {
  const char *const said[] = {"hakmem: overflow seen at free of a neighbour of 0x", NULL};
  assert_child_reports(overflow_beside_a_free, NULL, said);
}

/* At the lower level the first frees of a thread look at what lies beside their blocks, and some of
 * the later ones. */
CHILD_TEST(checks_become_rare) {
  enum { FREES = 1000 * CHECK_PERIOD };
  hak_free(must_malloc(1));
  struct quarantine *quarantine = heap_of_thread->quarantine;
  while (quarantine->checks < FIRST_CHECKS) REQUIRE(quarantine_is_time_to_check(quarantine));
  unsigned checks = 0;
  for (unsigned round = 0; round < FREES; round++)
    checks += quarantine_is_time_to_check(quarantine);
  REQUIRE(checks > 800 && checks < 1200); /* 1,000 and six times the spread */
}

BARE_TEST(checks_do_not_become_rare) {
  start_hardened(2);
  hak_free(must_malloc(1));
  for (unsigned round = 0; round < 10 * FIRST_CHECKS; round++)
    REQUIRE(quarantine_is_time_to_check(heap_of_thread->quarantine));
}

/* A block whose bit is clear and whose trailer is whole is being freed by another thread just
 * now. */
BARE_TEST(who_is_on_its_way_is_left_alone) {
  enum { BLOCKS = 1000, SIZE = 56, BLOCK_BYTES = 64 };
  static char *blocks[BLOCKS];
  start_hardened(2);
  for (unsigned index = 0; index < BLOCKS; index++)
    blocks[index] = memset(must_malloc(SIZE), 'A', SIZE);
  uintptr_t middle = (uintptr_t)blocks[500];
  REQUIRE(live_end(live_word(middle), middle, true));
  for (unsigned index = 0; index < BLOCKS; index++)
    if (blocks[index] == blocks[500] + BLOCK_BYTES || blocks[index] == blocks[500] - BLOCK_BYTES)
      hak_free(blocks[index]);
  REQUIRE(!is_live(middle) && blocks[500][0] == 'A');
  REQUIRE(live_begin(live_word(middle), middle, true));
  hak_free(blocks[500]);
}

enum { OTHERS_BLOCKS = 64, OTHERS_BYTES = 20000 };

static void *make_blocks(void *blocks) {
  for (unsigned index = 0; index < OTHERS_BLOCKS; index++)
    ((void **)blocks)[index] = must_malloc(OTHERS_BYTES);
  return NULL;
}

/* Mid blocks of another thread are used again here, as by default. */
CHILD_TEST(others_large_blocks_are_ready) {
  static void *blocks[OTHERS_BLOCKS];
  hak_free(must_malloc(1));
  on_a_thread(make_blocks, blocks);
  unsigned class = class_of_size(OTHERS_BYTES + TRAILER_BYTES);
  const struct quarantine *quarantine = heap_of_thread->quarantine;
  REQUIRE(quarantine->ready_count[class] == 0);
  for (unsigned index = 0; index < OTHERS_BLOCKS; index++) hak_free(blocks[index]);
  REQUIRE(quarantine->ready_count[class] > 0);
  REQUIRE(quarantine->ready_count[class] == quarantine->ready_most[class]);
}

/* What waits is told apart from what lives. */
CHILD_TEST(figures_know_them) {
  static struct glibc_figures figures;
  enum { CLASS_64 = 4, BLOCKS = 100 };
  void *blocks[BLOCKS];
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(50);
  for (unsigned index = 0; index < BLOCKS / 2; index++) hak_free(blocks[index]);
  glibc_figures_take(&figures);
  REQUIRE(figures.in_use_bytes == BLOCKS / 2 * class_bytes(CLASS_64));
  REQUIRE(figures.cached_blocks >= BLOCKS / 2); /* others are ready */
}
