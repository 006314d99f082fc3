/* The whole library where pages have 16 or 64 KiB, as on some aarch64 machines.  The fake operating
 * system ends the process at a call that is not made of whole pages. */
#include "observe/snapshot.h"
#include "unit.h"
#include "workload.h"

static const size_t page_sizes[] = {4 << 10, 16 << 10, 64 << 10};
enum { PAGE_SIZES = sizeof page_sizes / sizeof page_sizes[0], RANDOM_RUNS = 12 };

struct machine {
  size_t page_bytes;
  bool is_overcommit_strict;
  uint64_t seed; /* refuses at random; 0: nothing */
};

static void run_on(const void *argument) {
  const struct machine *machine = argument;
  struct workload load = {.must_succeed = machine->seed == 0}, after = {.must_succeed = true};
  os_fake.page_bytes = machine->page_bytes;
  os_fake.is_overcommit_strict = machine->is_overcommit_strict;
  if (machine->seed) os_fake_fail_at_random(OS_CALLS_ALL, 2 + machine->seed % 8, machine->seed);
  workload_run(&load);
  os_fake_fail_none();
  workload_run(&after);
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  REQUIRE(snapshot.big_live_bytes == 0);
  REQUIRE(snapshot.large_live_bytes == 0);
  REQUIRE(snapshot.slab_bytes_out == 0);
  void *page = hak_valloc(1);
  REQUIRE((uintptr_t)page % machine->page_bytes == 0);
  hak_free(page);
  page = hak_pvalloc(1);
  REQUIRE(hak_malloc_usable_size(page) >= machine->page_bytes);
  hak_free(page);
}

/* A block that fits a page has so much slack that its trailer must be able to tell it. */
static void check_exact(void *block, size_t bytes, size_t alignment) {
  REQUIRE(block && (uintptr_t)block % alignment == 0);
  REQUIRE(hak_malloc_usable_size(block) == bytes);
  memset(block, 1, bytes);
  hak_free(block);
}

static void run_hardened(const void *argument) {
  const struct machine *machine = argument;
  static char harden[] = "HAKMEM_HARDEN=2";
  static char *environment[] = {harden, NULL};
  os_fake.environment = environment;
  os_fake.page_bytes = machine->page_bytes;
  const size_t sizes[] = {1, 100, 4000, 4096, 8192, 30000, 32761, 65528, 65536, 65537, 200000};
  for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    size_t bytes = sizes[index];
    check_exact(hak_valloc(bytes), bytes, machine->page_bytes);
    check_exact(hak_pvalloc(bytes), round_up(bytes, machine->page_bytes), machine->page_bytes);
    for (size_t alignment = 8; alignment <= 256 << 10; alignment *= 2)
      check_exact(hak_memalign(alignment, bytes), bytes, alignment);
  }
}

/* Blocks whose entries in the owner map fill less than a page, one and several; each has small ones
 * beside it, which stay. */
static void run_huge(const void *argument) {
  const struct machine *machine = argument;
  const size_t mib = 1 << 20, sizes[] = {255 * mib, 257 * mib, 300 * mib, 1100 * mib, 5000 * mib};
  os_fake.page_bytes = machine->page_bytes;
  for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    char *before = hak_malloc(200000), *block = hak_malloc(sizes[index]);
    char *after = hak_malloc(200000);
    REQUIRE(before && block && after);
    block[0] = block[sizes[index] - 1] = 1;
    hak_free(block);
    REQUIRE(hak_malloc_usable_size(before) >= 200000 && hak_malloc_usable_size(after) >= 200000);
    hak_free(before);
    hak_free(after);
    hak_purge(true);
  }
}

static void on_each(struct machine machine, void (*run)(const void *)) {
  for (unsigned index = 0; index < PAGE_SIZES; index++) {
    machine.page_bytes = page_sizes[index];
    fprintf(stderr, "pages of %zu bytes:\n", machine.page_bytes);
    assert_child_succeeds(run, &machine);
  }
}

TEST(workload) { on_each((struct machine){0}, run_on); }

TEST(strict_overcommit) { on_each((struct machine){.is_overcommit_strict = true}, run_on); }

TEST(hardened) { on_each((struct machine){0}, run_hardened); }

TEST(huge_blocks) { on_each((struct machine){0}, run_huge); }

TEST(refusals) {
  for (uint64_t seed = 1; seed <= RANDOM_RUNS; seed++)
    on_each((struct machine){.seed = seed, .is_overcommit_strict = seed % 2 == 0}, run_on);
  printf("tally: %d faults\n", RANDOM_RUNS * PAGE_SIZES);
}
