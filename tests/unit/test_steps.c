/* src/reclaim/allowance, steps: how much free memory stays, and when the rest goes. */
#include "reclaim/reclaim.h"

#include <sys/mman.h>

#include "cache/divert.h"
#include "memory_use.h"
#include "profile/control.h"
#include "profile/trace_ring.h"

enum { BLOCK_BYTES = 1000, MANY = 60000, FEW = 20000 };

static void *others[MANY];

static void begin(void) {
  os_fake.is_multi_threaded = false;
  options.helper_thread = 0;
  start_library();
  options.big_cache_bytes = 16 * MIB;
}

static void take(void **table, unsigned count) {
  for (unsigned index = 0; index < count; index++) table[index] = must_malloc(BLOCK_BYTES);
}

static void give(void **table, unsigned count) {
  for (unsigned index = 0; index < count; index++) hak_free(table[index]);
}

static uint64_t purged_since(uint64_t before) { return look().purged_bytes - before; }

/* No time passes, and nothing but frees comes. */
CHILD_TEST(give_while_it_frees) {
  begin();
  take(others, MANY);
  uint64_t before = look().purged_bytes;
  give(others, MANY);
  REQUIRE(purged_since(before) >= 30 * MIB);
  REQUIRE(look().dirty_free_bytes <= 24 * MIB);
}

/* Nor need it be more than the budget: with few blocks left, the program is likely to free those,
 * too, and to sleep. */
CHILD_TESTS(give_nearly_all, unsigned, count, FEW, MANY) {
  begin();
  options.big_cache_bytes = 128 * MIB;
  take(others, count);
  give(others, count);
  REQUIRE(look().dirty_free_bytes <= 8 * MIB);
}

/* Nor need its flushes free much: each of them looks. */
CHILD_TESTS(give_all_by_small_flushes, unsigned, count, 10000, 12000, 14000) {
  begin();
  options.big_cache_bytes = 128 * MIB;
  for (unsigned index = 0; index < count; index++) others[index] = must_malloc(512);
  give(others, count);
  REQUIRE(look().dirty_free_bytes <= MIB);
}

/* Of a few Big blocks, too, however large: the last free gives as much as is left. */
CHILD_TESTS(give_big_blocks, unsigned, count, 50, 4, 1) {
  begin();
  options.big_cache_bytes = 256 * MIB;
  for (unsigned index = 0; index < count; index++) others[index] = must_malloc(400 / count * MIB);
  give(others, count);
  REQUIRE(look().dirty_free_bytes <= 8 * MIB);
}

/* The program takes again what has gone: from then on it stays. */
static void learn(void) {
  options.big_cache_bytes = 128 * MIB;
  take(others, MANY);
  give(others, MANY);
  take(others, MANY);
}

/* Then nothing goes while it frees; all goes by age, although no slow path comes. */
CHILD_TEST(give_by_age) {
  begin();
  learn();
  uint64_t before = look().purged_bytes;
  give(others, MANY);
  REQUIRE(purged_since(before) == 0);
  for (unsigned turn = 0; turn < 3000; turn++, os_fake_advance_ms(1))
    hak_free(must_malloc(BLOCK_BYTES));
  REQUIRE(purged_since(before) >= 40 * MIB);
}

static void give_all_and_wait(void) {
  begin();
  learn();
  give(others, MANY - 1);
  hak_free(must_malloc(BLOCK_BYTES));
  REQUIRE(heap_attention(heap_of_thread) == HEAP_WAIT);
}

/* Its frees look at the clock until nothing is left to wait for: memory that went, or is in slabs
 * in use, is not. */
CHILD_TEST(wait_no_longer_than_it_is_old) {
  give_all_and_wait();
  for (unsigned turn = 0; turn < 3000; turn++, os_fake_advance_ms(1))
    hak_free(must_malloc(BLOCK_BYTES));
  REQUIRE(!heap_attention(heap_of_thread));
}

/* However seldom it frees: the first free after a look reads the clock. */
CHILD_TEST(wait_with_few_frees) {
  give_all_and_wait();
  uint64_t before = look().purged_bytes;
  for (unsigned turn = 0; turn < 5; turn++, os_fake_advance_ms(1000))
    hak_free(must_malloc(BLOCK_BYTES));
  REQUIRE(purged_since(before) >= 40 * MIB);
}

/* A hundredth of its time: when it begins to wait, of the little that it has run, not of the time
 * since the machine's start. */
CHILD_TEST(wait_at_little_cost) {
  begin();
  os_fake_advance_ms(86400000);
  os_fake.processor_ms = 20;
  options.big_cache_bytes = 128 * MIB;
  take(others, MANY);
  unsigned passes = 0;
  for (unsigned index = 0; index < MANY * 3 / 4; hak_free(others[index++]))
    passes += heap_attention(heap_of_thread) == HEAP_WAIT;
  REQUIRE(passes && passes <= 4000);
}

/* A free that waits does what else is asked of it: it is recorded, or goes straight to its slab. */
CHILD_TEST(record_each_free_while_memory_waits) {
  give_all_and_wait();
  store_relaxed(&profile_control.trace_lease_ms, UINT64_MAX);
  profile_control.parts.generation++; /* as the tool does */
  for (unsigned poke = 0; poke < 2; poke++, hak_free(must_malloc(BLOCK_BYTES))) divert_all();
  for (unsigned turn = 0; turn < 10; turn++) {
    void *block = must_malloc(BLOCK_BYTES);
    REQUIRE(heap_attention(heap_of_thread) == HEAP_WAIT);
    uint64_t before = load_relaxed(&heap_of_thread->ring->written);
    hak_free(block);
    REQUIRE(load_relaxed(&heap_of_thread->ring->written) > before);
  }
}

CHILD_TEST(move_blocks_while_memory_waits) {
  give_all_and_wait();
  divert_move(heap_of_thread, true);
  hak_free(must_malloc(BLOCK_BYTES));
  const struct magazine *magazine = &heap_of_thread->magazines[slab_class_of(BLOCK_BYTES, 1)];
  for (unsigned turn = 0; turn < 10; turn++) {
    void *block = must_malloc(BLOCK_BYTES);
    REQUIRE(heap_attention(heap_of_thread) == HEAP_WAIT);
    unsigned before = magazine_count(magazine);
    hak_free(block);
    REQUIRE(magazine_count(magazine) == before);
  }
}

REPORT_TEST(find_a_double_free_while_memory_waits, "hakmem: double free of 0x") {
  give_all_and_wait();
  void *block = must_malloc(BLOCK_BYTES);
  os_fake_advance_ms(10);
  hak_free(block);
  hak_free(block);
}

/* A forked child, say: the blocks of a thread that did not come along are as live as its own. */
CHILD_TEST(leave_others_alone) {
  begin();
  take(others, MANY);
  heap_of_thread = (struct heap *)(uintptr_t)&empty_heap; /* the next block makes a heap */
  take(blocks, FEW);
  uint64_t before = look().purged_bytes;
  give(blocks, FEW);
  REQUIRE(purged_since(before) == 0);
}

/* ---- bursts of large blocks ------------------------------------------------------------------ */

enum { BURSTS = 30, VECTORS = 50, VECTOR_STEP = 20000, VECTOR_BYTES = 3000000, SETTLED_MS = 3000 };
#define BURST_BYTES (64 * MIB)

static void work_for_a_ms(void) {
  os_fake_advance_ms(1);
  os_fake.processor_ms++;
}

/* `pairs` of malloc and free that its magazines serve. */
static void small_requests(unsigned pairs) {
  for (unsigned pair = 0; pair < pairs; pair++) hak_free(must_malloc(BLOCK_BYTES));
  work_for_a_ms();
}

static void *grow(void *block, size_t bytes, bool by_realloc) {
  if (by_realloc) return hak_realloc(block, bytes);
  void *larger = must_malloc(bytes);
  hak_free(block);
  return larger;
}

static void grow_and_free(bool by_realloc) {
  void *block = must_malloc(16);
  for (size_t bytes = 24; bytes < BURST_BYTES; bytes += bytes / 2, work_for_a_ms())
    block = grow(block, bytes, by_realloc);
  hak_free(block);
}

static void grow_many(bool by_realloc) {
  void *vectors[VECTORS] = {NULL};
  for (size_t bytes = VECTOR_STEP; bytes <= VECTOR_BYTES; bytes += VECTOR_STEP, work_for_a_ms())
    for (unsigned index = 0; index < VECTORS; index++)
      vectors[index] = grow(vectors[index], bytes, by_realloc);
  for (unsigned index = 0; index < VECTORS; index++) hak_free(vectors[index]);
}

struct bursts {
  bool by_realloc;
  unsigned between, after; /* pairs of small requests: after each burst; in each ms at the end */
};

/* The last burst's memory goes: at once, or, where what went before was taken again at once, by
 * age, although no slow path comes. */
CHILD_TESTS(settle, struct bursts, bursts, {true, 0, 1}, {false, 0, 1}, {true, 100, 1},
            {false, 100, 1}, {true, 0, 1000}, {false, 0, 1000}, {true, 100, 10}, {false, 100, 10}) {
  os_fake.is_multi_threaded = false;
  start_library();
  for (unsigned burst = 0; burst < BURSTS; burst++) {
    grow_and_free(bursts.by_realloc);
    small_requests(bursts.between);
  }
  grow_many(bursts.by_realloc);
  for (unsigned ms = 0; ms < SETTLED_MS; ms++) small_requests(bursts.after);
  REQUIRE(look().dirty_free_bytes <= 8 * MIB);
}

/* ---- pages ----------------------------------------------------------------------------------- */

enum { MIXED_MOST = 2000000, SMALLEST = 16, TOUCHED_EVERY_BYTES = 4096 };

static void *mixed[MIXED_MOST];

struct mixture {
  size_t page_bytes, largest;
  unsigned count; /* by which it depends how many are left when something goes for the last time */
  unsigned survives_in; /* 0: none does */
};

static void take_mixed(const struct mixture *mixture, uint64_t *seed) {
  for (unsigned index = 0; index < mixture->count; index++) {
    size_t bytes = SMALLEST + random_below(seed, mixture->largest - SMALLEST + 1);
    mixed[index] = memset(must_malloc(bytes), 1, bytes);
  }
}

static void shuffle_mixed(const struct mixture *mixture, uint64_t *seed) {
  for (unsigned left = mixture->count; left > 1; left--) {
    size_t other = random_below(seed, left);
    void *block = mixed[left - 1];
    mixed[left - 1] = mixed[other];
    mixed[other] = block;
  }
}

/* In the fake system's pages, of which one is resident where a part of it is. */
static size_t resident_bytes_of(size_t chunk) {
  unsigned char parts[CHUNK_BYTES / TOUCHED_EVERY_BYTES];
  size_t bytes = 0, parts_a_page = os_page_bytes() / TOUCHED_EVERY_BYTES;
  if (mincore((void *)chunk_address(chunk), CHUNK_BYTES, parts) != 0) return 0; /* unmapped */
  for (size_t first = 0; first < sizeof parts; first += parts_a_page) {
    size_t part = first;
    while (part < first + parts_a_page && !(parts[part] & 1)) part++;
    if (part < first + parts_a_page) bytes += os_page_bytes();
  }
  return bytes;
}

static size_t slabs_resident_bytes(void) {
  size_t bytes = 0;
  for (size_t chunk = 0; chunk < load_relaxed(&window.frontier_chunk); chunk++) {
    const void *record = chunk_metadata(chunk);
    if (record && !((uintptr_t)record & CHUNK_IS_RANGES)) bytes += resident_bytes_of(chunk);
  }
  return bytes;
}

static void use_mixed(const struct mixture *mixture) {
  uint64_t seed = 1;
  os_fake.page_bytes = mixture->page_bytes;
  begin();
  take_mixed(mixture, &seed);
  shuffle_mixed(mixture, &seed);
  REQUIRE(slabs_resident_bytes() >= 60 * MIB);
  for (unsigned index = 0; index < mixture->count; index++)
    if (!mixture->survives_in || index % mixture->survives_in) hak_free(mixed[index]);
}

static void require_few(size_t most_bytes) {
  fprintf(stderr, "%zu MiB are resident\n", slabs_resident_bytes() / MIB);
  REQUIRE(slabs_resident_bytes() <= most_bytes);
}

/* All are freed, in no order, and nothing comes after the last one.  What is still in magazines
 * then keeps a page for each block, however large it is: 16 MiB, and a little more. */
static void leave_few_pages(const void *argument) {
  const struct mixture *mixture = argument;
  fprintf(stderr, "%u blocks, pages of %zu bytes: ", mixture->count, mixture->page_bytes);
  use_mixed(mixture);
  require_few(24 * MIB);
}

static void leave_few_pages_of(struct mixture mixture, unsigned times, unsigned step) {
  for (; times--; mixture.count -= step) assert_child_succeeds(leave_few_pages, &mixture);
}

TEST(leave_few_pages) {
  for (size_t page_bytes = 4 << 10; page_bytes <= 64 << 10; page_bytes *= 4) {
    leave_few_pages_of((struct mixture){page_bytes, 1024, 180000, 0}, 6, 10000);
    leave_few_pages_of((struct mixture){page_bytes, 64, MIXED_MOST, 0}, 2, 20000);
  }
}

/* Of 16 KiB, in which some 30 blocks lie: three in five have no survivor, a slab in eight. */
CHILD_TEST(leave_pages_of_16_kib) {
  use_mixed(&(struct mixture){16 << 10, 1024, 250000, 60});
  require_few(70 * MIB);
}
