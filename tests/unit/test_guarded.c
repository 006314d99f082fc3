/* src/guard/guarded and src/guard/guard_sampler: guarded blocks, and who gets one. */
#include "guard/guarded.h"

#include "checked/checked_range.h"
#include "heaps.h"
#include "observe/crash.h"
#include "workload.h"

#define PAGE os_page_bytes()

enum { RANGES = 3, MANY = 64 };

/* As HAKMEM_GUARD=1 with so many ranges, and every miss chosen. */
static void start_guarded(unsigned ranges) {
  options.guard = true;
  options.guard_bytes = ranges * GRANULE_BYTES;
  options.guard_rate = 1;
  start_library();
  hak_free(must_malloc(1));
}

static char *try_to_take(size_t size, size_t alignment) {
  struct allocation allocation = {.size = size, .alignment = alignment};
  return checked_range_guard(heap_of_thread, &allocation);
}

static uintptr_t page_of(uintptr_t address) { return address / PAGE * PAGE; }

/* Where it lies is drawn. */
static uintptr_t must_take(size_t size, size_t alignment, bool is_at_end) {
  for (;;) {
    char *block = try_to_take(size, alignment);
    REQUIRE(block && (uintptr_t)block % alignment == 0 && hak_owns(block));
    REQUIRE(hak_malloc_usable_size(block) == size);
    bool is_at_begin = (uintptr_t)block % PAGE == 0;
    size_t last_bytes = ((uintptr_t)block + size) % PAGE;
    bool ends_there = !last_bytes || PAGE - last_bytes < (alignment > 16 ? alignment : 16);
    if (is_at_end ? ends_there : is_at_begin) return (uintptr_t)block;
    hak_free(block);
  }
}

static uintptr_t take(void) { return must_take(100, 1, true); }
static void give(uintptr_t block) { hak_free((void *)block); }

static bool is_open(uintptr_t address) {
  return os_read_safely(&(char){0}, (const void *)address, 1);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

CHILD_TEST(reuse_the_oldest) {
  size_t ranges[RANGES];
  start_guarded(RANGES);
  uint64_t committed = look().committed_bytes;
  uintptr_t first = take(), second = take(), third = take();
  REQUIRE(!try_to_take(100, 1)); /* all are in use */
  REQUIRE(guarded_tenths_used() == 10);
  REQUIRE(look().committed_bytes == committed + RANGES * PAGE);
  REQUIRE(look().big_live_bytes == RANGES * PAGE);
  ranges[0] = granule_of(second), ranges[1] = granule_of(first), ranges[2] = granule_of(third);
  give(second), give(first), give(third);
  REQUIRE(guarded_tenths_used() == 0 && look().big_live_bytes == 0);
  REQUIRE(look().committed_bytes == committed);
  for (unsigned index = 0; index < RANGES; index++)
    REQUIRE(granule_of((uintptr_t)try_to_take(100, 1)) == ranges[index]);
}

CHILD_TEST(close_what_is_free) {
  start_guarded(RANGES);
  uintptr_t block = must_take(100, 1, false);
  REQUIRE(is_open(block) && !is_open(block - 1) && !is_open(block + PAGE));
  *(char *)block = 1;
  give(block);
  REQUIRE(!is_open(block));
}

static const size_t sizes[] = {0, 1, 7, 8, 9, 16, 100, 1000, 4095, 4096, 5000, 8192, 56 << 10};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void check_place(size_t size, size_t alignment) {
  size_t least = 16, bytes = size ? size : 1; /* 0 bytes: closed */
  uintptr_t begin = must_take(size, alignment, false), end = must_take(size, alignment, true);
  REQUIRE(!is_open(begin - 1));
  uintptr_t after = end + size, guard = (after + PAGE - 1) / PAGE * PAGE;
  REQUIRE(end % least == 0 && guard - after < (alignment > least ? alignment : least));
  REQUIRE(!is_open(guard) && is_open(guard - 1) == (size > 0) && is_open(end) == (size > 0));
  REQUIRE(is_open(begin + bytes - 1) == (size > 0));
  memset((void *)begin, 1, size);
  memset((void *)end, 1, size);
  give(begin), give(end);
}

CHILD_TEST(place_at_both_ends) {
  start_guarded(RANGES);
  for (unsigned index = 0; index < SIZES; index++)
    for (size_t alignment = 1; alignment <= PAGE; alignment *= 2)
      check_place(sizes[index], alignment);
  REQUIRE(!try_to_take((56 << 10) + 1, 1));
  REQUIRE(!try_to_take(1, 2 * PAGE));
}

/* ---- refusals -------------------------------------------------------------------------------- */

CHILD_TEST(go_without_address_space) {
  options.guard = true;
  options.guard_rate = 1;
  limits.hard_bytes = options.guard_bytes - 1;
  hak_free(must_malloc(100));
  REQUIRE(strstr(os_fake.written, "HAKMEM_GUARD=1: no address space; no block is guarded"));
  REQUIRE(!guarded_is_ready() && !guarded_tenths_used());
  limits.hard_bytes = 0;
  hak_free(must_malloc(100));
  REQUIRE(counted(COUNT_guarded_blocks) == 0);
}

CHILD_TEST(go_with_few_records) {
  enum { WANTED = 4096 };
  limits.hard_bytes = WANTED * (GRANULE_BYTES + sizeof(struct guard) + 8) + (100 << 10);
  start_guarded(WANTED);
  limits.hard_bytes = 0;
  unsigned count = 0;
  for (char *block; (block = try_to_take(100, 1)); count++)
    REQUIRE(!is_open(page_of((uintptr_t)block) + PAGE));
  REQUIRE(count > MANY && count < WANTED);
}

CHILD_TEST(lose_no_range) {
  start_guarded(RANGES);
  uint64_t committed = look().committed_bytes;
  os_fake_fail(1u << OS_CALL_OPEN_PAGES, 1, 2 * RANGES);
  for (unsigned time = 0; time < 2 * RANGES; time++) REQUIRE(!try_to_take(100, 1));
  os_fake_fail(1u << OS_CALL_CLOSE_PAGES, 1, UINT64_MAX);
  for (unsigned time = 0; time < 2 * RANGES; time++) hak_free(try_to_take(100, 1));
  os_fake_fail_none();
  limits.hard_bytes = committed;
  REQUIRE(!try_to_take(100, 1));
  limits.hard_bytes = 0;
  REQUIRE(look().committed_bytes == committed);
  uintptr_t blocks[RANGES];
  for (unsigned index = 0; index < RANGES; index++) blocks[index] = (uintptr_t)try_to_take(100, 1);
  for (unsigned index = 0; index < RANGES; index++) {
    give(blocks[index]);
    REQUIRE(!is_open(blocks[index]));
  }
}

/* A program whose every miss is guarded, refused one call; then all of it works. */
static void work_refused(const void *argument) {
  struct workload load = {0}, again = {.must_succeed = true};
  options.guard = true;
  options.guard_rate = 1;
  uint64_t call = *(const uint64_t *)argument;
  os_fake_fail(OS_CALLS_ALL, call, call);
  workload_run(&load);
  os_fake_fail_none();
  workload_run(&again);
  REQUIRE(guarded_tenths_used() == 0);
}

TEST(work_refused) {
  for (uint64_t call = 1; call < 400; call += call < 40 ? 1 : 7)
    assert_child_succeeds(work_refused, &call);
}

/* ---- what is said ---------------------------------------------------------------------------- */

enum guarded_misuse { FREE_TWICE, FREE_UNUSED, WRITE_BEHIND, WRITE_BEFORE };

static void misuse(const void *argument) {
  enum guarded_misuse which = *(const enum guarded_misuse *)argument;
  start_guarded(MANY);
  uintptr_t block = must_take(90, 1, which != WRITE_BEHIND);
  switch (which) {
    case FREE_TWICE: give(block); break;
    case FREE_UNUSED: give(block + MANY / 2 * GRANULE_BYTES); break;
    case WRITE_BEHIND: *(char *)(page_of(block) + PAGE - 1) = 0; break;
    case WRITE_BEFORE: *(char *)(block - 3) = 0; break;
  }
  give(block);
}

static void require_said(const char *said, const char *const *parts) {
  for (; *parts; parts++) {
    const char *found = strstr(said, *parts);
    if (!found) fail_msg("\"%s\" is not there, or not in its turn: %s", *parts, said);
    said = found + strlen(*parts);
  }
}

#define STACK(what)                                                               \
  "hakmem:   " what " by thread ", ":\nhakmem:     #0 0x", "\nhakmem:     #1 0x", \
      "\nhakmem:     #2 0x"

static void assert_misuse_says(enum guarded_misuse which, const char *const *parts) {
  struct child child = child_run(misuse, &which);
  assert_true(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT);
  require_said(child.said, parts);
}
#define assert_misuse(which, ...) \
  assert_misuse_says(which, (const char *const[]){__VA_ARGS__, NULL})

TEST(misuse) {
  assert_misuse(FREE_TWICE, "hakmem: double free of 0x",
                ": the block of 90 bytes is free already (guarded)\n", STACK("free"),
                STACK("allocated"), STACK("freed"));
  assert_misuse(FREE_UNUSED, "hakmem: invalid free of 0x", ": no block lives there (class none)\n");
  assert_misuse(WRITE_BEHIND, "hakmem: overflow seen at free of 0x",
                ": written past its 90 bytes, first at offset 4095 (guarded)\n", STACK("free"),
                STACK("allocated"));
  assert_misuse(WRITE_BEFORE, "hakmem: stray write seen at free of 0x",
                " 3 bytes before its block of 90 bytes (guarded)\n", STACK("free"),
                STACK("allocated"));
}

/* The report about a fault at that address. */
static const char *said_of(uintptr_t address, enum os_access access) {
  os_fake_forget_written();
  os_fake.look_at_crash(&(struct os_crash){.address = address, .access = access});
  return os_fake.written;
}

static void require_kind(uintptr_t address, const char *kind, const char *place) {
  const char *said = said_of(address, OS_ACCESS_WRITE);
  REQUIRE(strncmp(said, "hakmem: ", 8) == 0 && strncmp(said + 8, kind, strlen(kind)) == 0);
  REQUIRE(strstr(said, place));
}

CHILD_TEST(tell_faults_apart) {
  start_guarded(RANGES);
  crash_watch();
  uintptr_t first = must_take(96, 1, false), second = must_take(96, 1, false);
  require_kind(first - 1, "heap-buffer-underflow: write at 0x",
               ", 1 bytes before the block of 96 ");
  require_kind(first + PAGE, "heap-buffer-overflow", ", 4000 bytes after the block of 96 bytes");
  give(first);
  require_kind(first + 5, "use-after-free: write at 0x", ", 5 bytes into the block of 96 bytes");
  require_kind(first - 1, "use-after-free: write at 0x", ", 1 bytes before the block of 96 bytes");
  REQUIRE(!said_of(second + 5, OS_ACCESS_READ)[0]);
  REQUIRE(strstr(said_of(second - 1, OS_ACCESS_READ), ": read at 0x"));
  REQUIRE(strstr(said_of(second - 1, OS_ACCESS_UNKNOWN), ": access at 0x"));
  REQUIRE(!said_of(8, OS_ACCESS_READ)[0]);
}

/* ---- who gets one ---------------------------------------------------------------------------- */

CHILD_TEST(sample_every_miss) {
  options.guard = true;
  options.guard_rate = 1;
  options.guard_bytes = 4096 * GRANULE_BYTES;
  for (unsigned count = 1; count <= 1000; count++) {
    char *block = must_malloc(100);
    REQUIRE(counted(COUNT_guarded_blocks) == count);
    REQUIRE(hak_malloc_usable_size(block) == 100 && hak_owns(block));
  }
  char *block = hak_calloc(10, 10);
  for (unsigned at = 0; at < 100; at++) REQUIRE(block[at] == 0);
  memset(block, 7, 100);
  REQUIRE(hak_malloc_usable_size(block) == 112); /* hak_calloc asks for the whole class */
  block = hak_realloc(block, 100);
  REQUIRE(hak_malloc_usable_size(block) == 100 && !hak_expand(block, 5000));
  block = hak_realloc(block, 3000);
  for (unsigned at = 0; at < 100; at++) REQUIRE(block[at] == 7);
  block = hak_realloc(block, 100000); /* beyond a range */
  for (unsigned at = 0; at < 100; at++) REQUIRE(block[at] == 7);
  hak_free(block);
}

/* The others find their blocks in the magazine, which is refilled as none is given back. */
static uint64_t samples_of(unsigned misses) {
  uint64_t before = counted(COUNT_guarded_blocks), refills = counted(COUNT_refills) + misses;
  while (counted(COUNT_refills) < refills) must_malloc(4096);
  return counted(COUNT_guarded_blocks) - before;
}

CHILD_TEST(sample_at_the_rate) {
  options.guard = true;
  options.guard_rate = 10;
  options.guard_bytes = 4096 * GRANULE_BYTES;
  start_library();
  uint64_t samples = samples_of(5000), requests = 5000 + samples;
  REQUIRE(samples > requests / 10 * 9 / 10 && samples < requests / 10 * 11 / 10);
}

CHILD_TEST(keep_the_gap) {
  options.guard = true;
  options.guard_rate = 100; /* below that there is no gap */
  options.guard_bytes = 100 * GRANULE_BYTES;
  start_library();
  REQUIRE(samples_of(10000) <= 1); /* one may have been taken at the start */
  for (unsigned count = 0; count < 10; count++) {
    os_fake_advance_ms(10);
    REQUIRE(samples_of(1000) == 1);
  }
  REQUIRE(guarded_tenths_used() == 1); /* twice as long now */
  os_fake_advance_ms(20);
  samples_of(1000);
  os_fake_advance_ms(10);
  REQUIRE(samples_of(1000) == 0);
}

/* What the ticker does to a heap, and what comes of it. */
static void require_diverted(size_t size, bool is_small) {
  os_fake_advance_ms(100); /* the gap has passed */
  char *block = must_malloc(size);
  struct heap *heap = heap_of_thread;
  uint64_t before = counted(COUNT_guarded_blocks);
  store_relaxed(&heap->tag, MAP_TAG_UNOWNED | HEAP_POKE);
  hak_free(block);
  REQUIRE(heap->tag == MAP_TAG_THREADS);
  block = must_malloc(size);
  REQUIRE(counted(COUNT_guarded_blocks) - before == is_small);
  hak_free(block);
}

CHILD_TEST(follow_the_ticker) {
  os_fake.is_multi_threaded = false; /* else the ticker comes as well */
  options.guard = true;
  options.guard_rate = UINT32_MAX; /* none is chosen otherwise */
  start_library();
  require_diverted(64, true);
  require_diverted(3000, true);
  require_diverted(100000, false); /* beyond a range: the next that fits is sampled */
  must_malloc(64);
  REQUIRE(counted(COUNT_guarded_blocks) == 3);
}
