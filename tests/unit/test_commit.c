/* src/map/commit and src/config/limits: the memory counted as held, and the limits on it. */
#include "map/commit.h"

#include "fill.h"
#include "ranges/range.h"
#include "slab/record.h"
#include "workload.h"

#define MIB ((size_t)1 << 20)

/* Without a helper thread nothing is half done when the test looks. */
static void start(char *setting) {
  static char *environment[2];
  environment[0] = setting;
  os_fake.environment = environment;
  options.helper_thread = 0;
  start_library();
}

/* ---- what is counted ------------------------------------------------------------------------- */

/* Slots of a SuperSlab whose pages may be there: taken ones, and free ones that were not given
 * back. */
static unsigned slots_held(const struct superslab *superslab) {
  return count_bits(slots_dirty(load_relaxed(&superslab->slots)));
}

static uint64_t bytes_held(void) {
  uint64_t slots = 0;
  for (size_t chunk = 0; chunk < load_relaxed(&window.frontier_chunk); chunk++) {
    uintptr_t metadata = (uintptr_t)chunk_metadata(chunk);
    if (metadata && !(metadata & CHUNK_IS_RANGES)) slots += slots_held(superslab_of_chunk(chunk));
  }
  struct range_sizes ranges;
  range_measure(&ranges);
  return slots * GRANULE_BYTES + ranges.mapped_bytes - ranges.clean_bytes -
         load_relaxed(&totals.uncounted_bytes) + load_relaxed(&totals.metadata_bytes);
}

static void require_exact(void) {
  uint64_t counted = load_relaxed(&totals.committed_bytes), held = bytes_held();
  if (counted != held)
    fprintf(stderr, "counted %llu, held %llu\n", (unsigned long long)counted,
            (unsigned long long)held);
  REQUIRE(counted == held);
}

static void require_exact_all_along(void) {
  for (unsigned round = 0; round < 3; round++) {
    struct workload load = {.must_succeed = true};
    workload_run(&load);
    require_exact();
    os_fake_advance_ms(300);
    hak_free(must_malloc(3 * MIB));
    require_exact();
    hak_purge(true);
    require_exact();
  }
}

CHILD_TEST(count_exactly) {
  start(NULL);
  require_exact_all_along();
}

CHILD_TEST(count_exactly_under_strict_overcommit) {
  os_fake.is_overcommit_strict = true;
  start(NULL);
  require_exact_all_along();
}

/* Joining, growing and shrinking ranges takes CLEAN and DIRTY ones in all mixtures. */
CHILD_TEST(count_ranges_exactly) {
  enum { BLOCKS = 24, STEPS = 3000 };
  static void *blocks[BLOCKS];
  uint64_t seed = 7;
  start(NULL);
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned at = (unsigned)random_below(&seed, BLOCKS);
    size_t size = 40000 + random_below(&seed, 6 * MIB);
    if (random_below(&seed, 3)) {
      void *block = hak_realloc(blocks[at], size);
      REQUIRE(block);
      blocks[at] = block;
    } else {
      hak_free(blocks[at]);
      blocks[at] = NULL;
    }
    os_fake_advance_ms(random_below(&seed, 60));
    require_exact();
  }
}

/* Memory that the system does not take back stays held. */
CHILD_TEST(count_refused_purges) {
  start(NULL);
  os_fake_fail(1u << OS_CALL_PURGE, 1, UINT64_MAX);
  struct workload load = {.must_succeed = true};
  workload_run(&load);
  hak_purge(true);
  require_exact();
  os_fake_fail_none();
  hak_purge(true);
  require_exact();
  workload_run(&load);
  require_exact();
}

/* Many ranges that live ones keep apart, and a system that takes none back, neither pages nor
 * addresses (locked memory, an exhausted count of mappings): the round ends, and nothing is
 * lost. */
CHILD_TEST(end_when_all_is_refused) {
  enum { PAIRS = 200 };
  static void *blocks[2 * PAIRS];
  start(NULL);
  for (unsigned index = 0; index < 2 * PAIRS; index++) blocks[index] = must_malloc(300000);
  for (unsigned index = 0; index < 2 * PAIRS; index += 2) hak_free(blocks[index]);
  os_fake_fail(1u << OS_CALL_PURGE | 1u << OS_CALL_UNMAP | 1u << OS_CALL_MAP_AT, 1, UINT64_MAX);
  hak_purge(true);
  require_exact();
  REQUIRE(!hak_malloc((size_t)1 << 32)); /* gives addresses back, without effect */
  require_exact();
  os_fake_fail(1u << OS_CALL_UNMAP | 1u << OS_CALL_MAP_AT, 1, UINT64_MAX);
  os_fake_advance_ms(20); /* a refusal just after another has its answer, without a round */
  REQUIRE(!hak_malloc((size_t)1 << 32)); /* pages at least */
  require_exact();
  REQUIRE(look().dirty_free_bytes == 0);
  for (unsigned index = 0; index < 2 * PAIRS; index += 2) blocks[index] = must_malloc(300000);
  os_fake_fail_none();
  for (unsigned index = 0; index < 2 * PAIRS; index++) hak_free(blocks[index]);
  hak_purge(true);
  require_exact();
}

/* A system that refuses anything at any time leaves no trace in the sum. */
CHILD_TEST(count_when_refused) {
  start(NULL);
  for (uint64_t call = 1; call < 60; call++) {
    os_fake_fail(OS_CALLS_ALL & ~(1u << OS_CALL_THREAD_START), call, call + 1);
    struct workload load = {.must_succeed = false};
    workload_run(&load);
    os_fake_fail_none();
    require_exact();
    if (call % 8 == 0) hak_purge(true);
  }
}

/* ---- the hard limit -------------------------------------------------------------------------- */

CHILD_TEST(fill_to_the_hard_limit) {
  start((char[]){"HAKMEM_LIMIT_HARD=64M"});
  for (unsigned index = 0; index < 3 * SIZE_COUNT; index++) {
    struct link *chain = NULL;
    size_t size = fill_sizes[index % SIZE_COUNT], bytes = fill(&chain, size);
    if (bytes < 44 * MIB) fprintf(stderr, "blocks of %zu: %zu bytes\n", size, bytes);
    REQUIRE(bytes >= 44 * MIB && bytes <= 64 * MIB);
    require_exact();
    empty(&chain);
  }
  REQUIRE(look().limit_hard_refusals >= 3 * SIZE_COUNT);
  REQUIRE(counted(COUNT_enomem) == 3 * SIZE_COUNT);
  REQUIRE(hak_malloc(65 * MIB) == NULL);
  hak_free(must_malloc(40 * MIB));
}

/* realloc takes no more than the limit either, and leaves the block as it was. */
CHILD_TEST(grow_to_the_hard_limit) {
  start((char[]){"HAKMEM_LIMIT_HARD=64M"});
  unsigned char *block = must_malloc(2 * MIB);
  size_t size = 2 * MIB;
  memset(block, 0x5a, size);
  for (;; size += MIB) {
    unsigned char *grown = hak_realloc(block, size + MIB);
    REQUIRE(load_relaxed(&totals.committed_bytes) <= limits.hard_bytes);
    if (!grown) break;
    block = grown;
  }
  REQUIRE(size >= 30 * MIB && block[2 * MIB - 1] == 0x5a);
  require_exact();
  hak_free(block);
  hak_free(must_malloc(56 * MIB));
}

/* What a block did not count at its end is another's once the block has shrunk. */
CHILD_TEST(shrink_at_the_hard_limit) {
  enum { MOST = 300, SIZE = 260 << 10 };
  void *blocks[MOST];
  unsigned count = 0;
  start((char[]){"HAKMEM_LIMIT_HARD=64M"});
  while ((blocks[count] = hak_malloc(SIZE))) count++;
  for (unsigned index = 0; index < count; index++) {
    blocks[index] = hak_realloc(blocks[index], SIZE / 2);
    REQUIRE(load_relaxed(&totals.committed_bytes) <= limits.hard_bytes);
    require_exact();
  }
  struct link *chain = NULL;
  fill(&chain, 100000);
  REQUIRE(load_relaxed(&totals.committed_bytes) <= limits.hard_bytes);
  require_exact();
}

/* The system refuses to move pages, and has lost the target's. */
CHILD_TEST(lose_pages_at_the_hard_limit) {
  start((char[]){"HAKMEM_LIMIT_HARD=256M"});
  os_fake_fail(1u << OS_CALL_MOVE_PAGES, 1, UINT64_MAX);
  os_fake.does_half = true;
  void *block = must_malloc(8 * MIB), *wall = must_malloc(8 * MIB);
  hak_free(hak_realloc(block, 12 * MIB + 1000));
  REQUIRE(os_fake.refused[OS_CALL_MOVE_PAGES]);
  hak_free(wall);
  hak_purge(true);
  require_exact();
  REQUIRE(!load_relaxed(&totals.uncounted_bytes));
}

static void *allocate_on_a_thread(void *unused) {
  hak_free(must_malloc(100));
  hak_free(must_malloc(100000));
  return unused;
}

/* Free memory waits in the pool and the sum is at the limit: a new thread gets its heap all the
 * same. */
CHILD_TEST(start_threads_at_the_limit) {
  start((char[]){"HAKMEM_LIMIT_HARD=64M"});
  struct link *chain = NULL;
  fill(&chain, 5000);
  empty(&chain);
  for (unsigned thread = 0; thread < 20; thread++) on_a_thread(allocate_on_a_thread, NULL);
  require_exact();
}

/* ---- the soft limit -------------------------------------------------------------------------- */

static void swing_by_48_mib(void) {
  enum { BLOCKS = 24 };
  void *blocks[BLOCKS];
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(2 * MIB - 1000);
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
}

CHILD_TEST(shrink_at_the_soft_limit) {
  start((char[]){"HAKMEM_LIMIT_SOFT=32M"});
  swing_by_48_mib(); /* time stands still: no age has a part in it */
  REQUIRE(counted(COUNT_limit_soft_hits) >= 1);
  os_fake_advance_ms(50);
  hak_free(must_malloc(200000));
  REQUIRE(load_relaxed(&totals.committed_bytes) <= 32 * MIB);
  require_exact();
}

/* A program that lives above the limit is left in peace, more and more. */
CHILD_TEST(live_above_the_soft_limit) {
  start((char[]){"HAKMEM_LIMIT_SOFT=8M"});
  void *kept = must_malloc(16 * MIB);
  uint64_t before = counted(COUNT_limit_soft_hits);
  for (unsigned ms = 0; ms < 10000; ms++) {
    os_fake_advance_ms(1);
    hak_free(must_malloc(2 * MIB));
  }
  uint64_t hits = counted(COUNT_limit_soft_hits) - before;
  REQUIRE(hits >= 9 && hits <= 20); /* 10, 20, 40 … 1,000 ms */
  os_fake.purge_ns_a_page = 2000;   /* rounds are cut, and what goes comes back */
  static void *blocks[8000];
  for (unsigned swing = 0; swing < 20; swing++) {
    swing_by_48_mib();
    for (unsigned index = 0; index < 8000; index++) blocks[index] = must_malloc(5000);
    for (unsigned index = 0; index < 8000; index++) hak_free(blocks[index]);
  }
  hits = counted(COUNT_limit_soft_hits) - before - hits;
  REQUIRE(hits >= 1 && hits <= 200);
  hak_free(kept);
}

CHILD_TEST(stay_below_the_soft_limit) {
  start((char[]){"HAKMEM_LIMIT_SOFT=1G"});
  swing_by_48_mib();
  REQUIRE(counted(COUNT_limit_soft_hits) == 0);
}

/* ---- options --------------------------------------------------------------------------------- */

static const struct os_fake_file tree[] = {{"/proc/self/cgroup", "0::/job\n"},
                                           {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                                           {"/sys/fs/cgroup/job/cpu.max", "100000 100000\n"},
                                           {0}};

static void read_options_from(char *soft, char *hard) {
  char *environment[] = {soft, hard, NULL};
  options_read(environment);
  limits_read();
}

CHILD_TEST(read_bytes) {
  read_options_from((char[]){"HAKMEM_LIMIT_SOFT=2.5G"}, (char[]){"HAKMEM_LIMIT_HARD=5000MB"});
  REQUIRE(load_relaxed(&limits.soft_bytes) == UINT64_C(5) << 29);
  REQUIRE(limits.hard_bytes == 5000000000);
  REQUIRE(os_fake.written_bytes == 0);
}

CHILD_TEST(read_percentages) {
  os_fake.files = tree;
  read_options_from((char[]){"HAKMEM_LIMIT_SOFT=50%"}, (char[]){"HAKMEM_LIMIT_HARD=100%"});
  REQUIRE(load_relaxed(&limits.soft_bytes) / MIB == 50 - 1 ||
          load_relaxed(&limits.soft_bytes) / MIB == 50);
  REQUIRE(limits.hard_bytes > 100 * MIB - 100 && limits.hard_bytes <= 100 * MIB);
  REQUIRE(os_fake.written_bytes == 0);
}

CHILD_TEST(miss_the_cgroup) {
  read_options_from((char[]){"HAKMEM_LIMIT_SOFT=50%"}, NULL);
  REQUIRE(load_relaxed(&limits.soft_bytes) == 0);
  REQUIRE(strcmp(os_fake.written,
                 "hakmem: warning: HAKMEM_LIMIT_SOFT=50%: no cgroup memory limit found to take a "
                 "percentage of; ignored\n") == 0);
}

CHILD_TEST(refuse_nonsense) {
  static const char *const values[] = {"0%", "101%", "%", "5%%", "-1", "x", "1.5", "99999999999%"};
  os_fake.files = tree;
  for (size_t index = 0; index < sizeof values / sizeof values[0]; index++) {
    char setting[64] = "HAKMEM_LIMIT_HARD=";
    strcat(setting, values[index]);
    os_fake_forget_written();
    read_options_from(setting, NULL);
    REQUIRE(limits.hard_bytes == 0);
    REQUIRE(strstr(os_fake.written,
                   "is not a size (500M, 500MiB, 500MB, 2.5G) or a percentage from 1% to 100%; "
                   "it does not hold\n"));
  }
}

static void require_said(const char *line) {
  if (strcmp(os_fake.written, line) != 0) fprintf(stderr, "%s", os_fake.written);
  REQUIRE(strcmp(os_fake.written, line) == 0);
  os_fake_forget_written();
}

/* The report names the fault, and the limit in force. */
CHILD_TEST(refuse_what_cannot_be_meant) {
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=0"}, NULL);
  REQUIRE(limits.hard_bytes == 0);
  require_said(
      "hakmem: warning: HAKMEM_LIMIT_HARD=\"0\" is zero, which would allow nothing; it does not "
      "hold\n");
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=500K"}, NULL);
  REQUIRE(limits.hard_bytes == 0);
  require_said(
      "hakmem: warning: HAKMEM_LIMIT_HARD=\"500K\" is less than 1 MiB, which hakmem needs for "
      "itself; it does not hold\n");
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=100M"}, (char[]){"HAKMEM_LIMIT_SOFT=101M"});
  REQUIRE(limits.hard_bytes == 100 * MIB && load_relaxed(&limits.soft_bytes) == 0);
  require_said(
      "hakmem: warning: HAKMEM_LIMIT_SOFT=\"101M\" exceeds HAKMEM_LIMIT_HARD, which will be "
      "reached first; "
      "the hard limit alone holds\n");
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=100M"}, (char[]){"HAKMEM_LIMIT_SOFT=100M"});
  REQUIRE(load_relaxed(&limits.soft_bytes) == 100 * MIB);
  REQUIRE(os_fake.written_bytes == 0);
}

/* A limit that cannot be reached holds, but is most likely a mistake. */
CHILD_TEST(doubt_what_is_beyond_all) {
  static const struct os_fake_file machine[] = {{"/proc/meminfo", "MemTotal:        2097152 kB\n"},
                                                {0}};
  os_fake.files = machine;
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=2G"}, NULL);
  REQUIRE(os_fake.written_bytes == 0);
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=2049M"}, NULL);
  REQUIRE(limits.hard_bytes == 2049 * MIB);
  require_said(
      "hakmem: warning: HAKMEM_LIMIT_HARD=\"2049M\" exceeds the machine's memory of 2048 MiB, "
      "which will be reached first\n");
  os_fake.files = tree;
  read_options_from((char[]){"HAKMEM_LIMIT_HARD=101M"}, NULL);
  REQUIRE(limits.hard_bytes == 101 * MIB);
  require_said(
      "hakmem: warning: HAKMEM_LIMIT_HARD=\"101M\" exceeds the cgroup's limit of 100 MiB, which "
      "will be reached first\n");
}

/* ---- the cgroup ------------------------------------------------------------------------------ */

static char used_text[32];
static const struct os_fake_file used_tree[] = {{"/proc/self/cgroup", "0::/job\n"},
                                                {"/sys/fs/cgroup/job/memory.max", "104857600\n"},
                                                {"/sys/fs/cgroup/job/cpu.max", "100000 100000\n"},
                                                {"/sys/fs/cgroup/job/memory.current", used_text},
                                                {0}};

static uint64_t decay_with(unsigned used_mib) {
  snprintf(used_text, sizeof used_text, "%llu\n", (unsigned long long)used_mib * MIB);
  limits_poll();
  return limits_decay_ms(1000);
}

CHILD_TEST(grow_keener) {
  os_fake.files = used_tree;
  REQUIRE(decay_with(10) == 1000 && decay_with(75) == 1000);
  uint64_t before = 1000;
  for (unsigned used = 76; used <= 98; used += 2) {
    uint64_t decay = decay_with(used);
    REQUIRE(decay < before);
    before = decay;
  }
  REQUIRE(before >= 62 && before < 130);
  REQUIRE(decay_with(100) == 62 && decay_with(5000) == 62);
  REQUIRE(decay_with(50) == 1000);
}

/* The cgroup has one processor's time: one of one, one of two, a quarter at least. */
static void follow_quota(const void *argument) {
  const unsigned *processors_and_budget = argument;
  os_fake.files = tree;
  os_fake.processor_count = processors_and_budget[0];
  REQUIRE(limits_budget(1000) == 1000);
  limits_poll();
  REQUIRE(limits_budget(1000) == processors_and_budget[1]);
  REQUIRE(limits_budget(64 * MIB) == 100 * MIB / 16 + 1);
}

TEST(follow_the_quota) {
  static const unsigned machines[][2] = {{1, 1000}, {2, 500}, {64, 250}};
  for (unsigned index = 0; index < 3; index++) assert_child_succeeds(follow_quota, machines[index]);
}

/* Three quarters of the cgroup's limit are a soft limit, unless there is one. */
CHILD_TEST(take_three_quarters) {
  os_fake.files = tree;
  limits_poll();
  REQUIRE(load_relaxed(&limits.soft_bytes) == 75 * MIB);
  read_options_from((char[]){"HAKMEM_LIMIT_SOFT=90M"}, NULL);
  limits_poll();
  REQUIRE(load_relaxed(&limits.soft_bytes) == 90 * MIB);
}

/* A small process does not look, a large one before its caches fill. */
CHILD_TEST(look_when_large) {
  os_fake.files = used_tree;
  start(NULL);
  for (unsigned step = 0; step < 100; step++) {
    os_fake_advance_ms(100);
    hak_free(must_malloc(70000));
  }
  REQUIRE(load_relaxed(&os_fake.files_read) == 0);
  swing_by_48_mib();
  REQUIRE(load_relaxed(&os_fake.files_read) > 0);
  REQUIRE(look().dirty_free_bytes <= 100 * MIB / 16 + 4 * MIB);
}
