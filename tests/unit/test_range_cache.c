/* src/large/range_cache: freed Large ranges found again by class and call site, by every thread. */
#include "large/range_cache.h"

#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "fake/os_fake.h"
#include "heaps.h"
#include "map/metadata.h"
#include "large/large.h"
#include "report/report.h"

enum { CLASS = SLAB_CLASS_COUNT + 1, GRANULES = 2, HOME = 5 };

static struct counters counters;

static size_t fresh_of(size_t granules, uint32_t site) {
  size_t granule = range_take_fresh(&(struct range_request){granules, 1, 0, FROM_ANY}, &counters);
  REQUIRE(granule != NO_GRANULE);
  range_info(granule)->stamp_ms = (uint32_t)os_now_coarse_ms();
  range_info(granule)->site = site;
  return granule;
}
static size_t fresh(uint32_t site) { return fresh_of(GRANULES, site); }

static void set_up(void) { REQUIRE(window_init(UINT64_C(64) << 30) && metadata_allocate(1)); }

static uint64_t dirty_granules(void) {
  struct range_sizes sizes;
  range_measure(&sizes);
  return sizes.dirty_bytes >> GRANULE_SHIFT;
}

static int keep_and_find(const void *unused) {
  (void)unused;
  set_up();
  size_t others = fresh(7), own = fresh(8);
  REQUIRE(range_cache_put(others, HOME, CLASS) && range_cache_put(own, HOME, CLASS));
  REQUIRE(range_cache_take(HOME, CLASS + 1, 8) == NO_GRANULE);
  REQUIRE(range_cache_take(HOME, CLASS, 8) == own); /* its own before others */
  REQUIRE(range_cache_take(HOME, CLASS, 8) == others);
  REQUIRE(range_cache_take(HOME, CLASS, 8) == NO_GRANULE);
  return 0;
}

/* What one thread has freed is anybody's. */
static int find_what_others_freed(const void *unused) {
  (void)unused;
  set_up();
  size_t own = fresh(7), others = fresh(7);
  REQUIRE(range_cache_put(own, HOME, CLASS) && range_cache_put(others, HOME - 1, CLASS));
  REQUIRE(range_cache_take(HOME, CLASS, 7) == own);
  REQUIRE(range_cache_take(HOME, CLASS, 7) == others);
  return 0;
}

static int hold_so_much(const void *unused) {
  (void)unused;
  set_up();
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++) {
    unsigned kept = 0;
    size_t granules = class - SLAB_CLASS_COUNT + 1;
    while (range_cache_put(fresh_of(granules, 7), HOME, class)) kept++;
    REQUIRE(kept >= 1 && kept <= RANGE_CACHE_SLOTS);
    REQUIRE(kept == 1 || kept * class_bytes(class) <= 1 << 20);
  }
  return 0;
}

static int go_back_by_age(const void *unused) {
  (void)unused;
  set_up();
  size_t old = fresh(7);
  REQUIRE(range_cache_put(old, HOME, CLASS));
  os_fake_advance_ms(600);
  size_t young = fresh(7);
  REQUIRE(range_cache_put(young, HOME + 1, CLASS));
  os_fake_advance_ms(400);
  struct purge purge = {.now_ms = (uint32_t)os_now_coarse_ms(),
                        .decay_ms = 1000,
                        .bytes_left = SIZE_MAX,
                        .calls_left = SIZE_MAX};
  range_cache_purge(&purge, &counters);
  REQUIRE(purge.work_remains && dirty_granules() == GRANULES);
  REQUIRE(range_cache_take(HOME, CLASS, 7) == young);
  REQUIRE(range_cache_take(HOME, CLASS, 7) == NO_GRANULE);
  return 0;
}

/* Before the process grows: of all threads, but not again in the same tick, and never of an empty cache. */
static int merge_before_growth(const void *unused) {
  (void)unused;
  set_up();
  os_fake_advance_ms(10);
  REQUIRE(!range_cache_merge(HOME, &counters));
  REQUIRE(range_cache_put(fresh(7), HOME + 1, CLASS));
  REQUIRE(range_cache_merge(HOME, &counters) && dirty_granules() == GRANULES);
  REQUIRE(range_cache_put(fresh(7), HOME + 1, CLASS) && range_cache_put(fresh(7), HOME, CLASS));
  REQUIRE(range_cache_merge(HOME, &counters) && dirty_granules() == 2 * GRANULES);
  REQUIRE(!range_cache_merge(HOME, &counters));
  os_fake_advance_ms(1);
  REQUIRE(range_cache_merge(HOME, &counters) && dirty_granules() == 3 * GRANULES);
  return 0;
}

/* ---- as malloc and free come by --------------------------------------------------------------------------------- */

static int serve_whoever_asks(const void *unused) {
  (void)unused;
  start_library();
  void *block = must_malloc(200000);
  hak_free(block);
  uint64_t allocs = counted(COUNT_large_allocs);
  REQUIRE(must_malloc(200000) == block && counted(COUNT_large_allocs) == allocs);
  return 0;
}

static void *free_and_end(void *block) {
  hak_free(block);
  return NULL;
}

static int serve_after_a_thread_ended(const void *unused) {
  (void)unused;
  start_library();
  void *block = must_malloc(200000);
  on_a_thread(free_and_end, block);
  REQUIRE(must_malloc(200000) == block);
  return 0;
}

/* Blocks of one class that are cached, side by side, become one of another before the process grows. */
static int merge_for_another_class(const void *unused) {
  enum { BLOCKS = 64, TURNS = 8 };
  void *blocks[BLOCKS];
  (void)unused;
  start_library();
  for (unsigned turn = 0; turn < TURNS; turn++) {
    for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(100 << 10);
    for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  }
  uint64_t before = look().committed_bytes;
  unsigned count = 0;
  while (look().committed_bytes == before && count < BLOCKS)
    blocks[count++] = must_malloc(500 << 10);
  REQUIRE(count >= 12 && count < BLOCKS); /* of 64 times 128 KiB */
  REQUIRE(range_cache_take(HOME, CLASS, 7) == NO_GRANULE);
  return 0;
}

/* A freed block is nobody's until it is taken again: no free of it goes unnoticed. */
static int notice_a_second_free(const void *unused) {
  (void)unused;
  start_library();
  void *blocks[3];
  for (unsigned index = 0; index < 3; index++) blocks[index] = must_malloc(100000);
  for (unsigned index = 0; index < 3; index++) {
    hak_free(blocks[index]);
    REQUIRE(!map_entry_is_live(owner_map_entry((uintptr_t)blocks[index])));
  }
  return 0;
}

static ATOMIC(void *) shared;
static ATOMIC(unsigned) turn, turns_done;

static void *free_each_too(void *turns) {
  hak_free(must_malloc(100000)); /* its heap is made */
  for (unsigned at = 1; at <= *(const unsigned *)turns; at++) {
    while (load_acquire(&turn) != at) sched_yield();
    hak_free(load_relaxed(&shared));
    store_release(&turns_done, at);
  }
  return NULL;
}

static void free_both(unsigned at) {
  void *block = must_malloc(100000);
  store_relaxed(&shared, block);
  store_release(&turn, at);
  for (ATOMIC(unsigned) rest = at % 97; rest; rest--) {
  }
  hak_free(block);
  while (load_acquire(&turns_done) != at) sched_yield();
}

/* Of two threads that free a block at once one is told so: it is not given out twice. */
static int free_at_once(const void *unused) {
  (void)unused;
  unsigned turns = 20000;
  pthread_t thread;
  start_library();
  misuse_action = MISUSE_IGNORE;
  REQUIRE(pthread_create(&thread, NULL, free_each_too, &turns) == 0);
  for (unsigned at = 1; at <= turns; at++) {
    free_both(at);
    void *first = must_malloc(100000), *second = must_malloc(100000);
    REQUIRE(first != second);
    hak_free(first);
    hak_free(second);
  }
  return pthread_join(thread, NULL);
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

static sem_t is_cut_off;

static void stop_here(int signal_number) {
  (void)signal_number;
  sem_post(&is_cut_off);
  for (;;) pause();
}

static void *purge_until_stopped(void *unused) {
  (void)unused;
  struct purge everything = PURGE_EVERYTHING;
  range_cache_purge(&everything, &counters);
  return NULL;
}

static void protect_record(size_t granule, int protection) {
  uintptr_t record = (uintptr_t)range_info(granule), page_bytes = os_page_bytes();
  REQUIRE(mprotect((void *)(record - record % page_bytes), page_bytes, protection) == 0);
}

static int go_on_in_the_child(size_t lost, size_t left) {
  signal(SIGSEGV, SIG_DFL);
  protect_record(lost, PROT_READ | PROT_WRITE);
  range_cache_after_fork();
  REQUIRE(range_cache_take(HOME + 1, CLASS, 7) == left);
  REQUIRE(range_cache_take(HOME, CLASS, 7) == NO_GRANULE);
  return 0;
}

/* In the child a thread is cut off with one range of a shard in its hands: the others are found. */
static int find_in_a_child(const void *unused) {
  (void)unused;
  pthread_t thread;
  int status;
  set_up();
  size_t lost = fresh(7);
  fresh_of((size_t)8 * GRANULES_PER_CHUNK, 7);
  size_t left = fresh(7);
  while (left / GRANULES_PER_CHUNK < lost / GRANULES_PER_CHUNK + 8) left = fresh(7);
  REQUIRE(range_cache_put(lost, HOME, CLASS) && range_cache_put(left, HOME, CLASS));
  REQUIRE(sem_init(&is_cut_off, 0, 0) == 0 && signal(SIGSEGV, stop_here) != SIG_ERR);
  protect_record(lost, PROT_NONE);
  REQUIRE(pthread_create(&thread, NULL, purge_until_stopped, NULL) == 0);
  REQUIRE(sem_wait(&is_cut_off) == 0);
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(go_on_in_the_child(lost, left));
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

CHILD_TEST(keep_and_find)
CHILD_TEST(find_what_others_freed)
CHILD_TEST(hold_so_much)
CHILD_TEST(go_back_by_age)
CHILD_TEST(merge_before_growth)
CHILD_TEST(serve_whoever_asks)
CHILD_TEST(serve_after_a_thread_ended)
CHILD_TEST(merge_for_another_class)
CHILD_TEST(notice_a_second_free)
CHILD_TEST(free_at_once)
CHILD_TEST(find_in_a_child)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keep_and_find),
      cmocka_unit_test(test_find_what_others_freed),
      cmocka_unit_test(test_hold_so_much),
      cmocka_unit_test(test_go_back_by_age),
      cmocka_unit_test(test_merge_before_growth),
      cmocka_unit_test(test_serve_whoever_asks),
      cmocka_unit_test(test_serve_after_a_thread_ended),
      cmocka_unit_test(test_merge_for_another_class),
      cmocka_unit_test(test_notice_a_second_free),
      cmocka_unit_test(test_free_at_once),
      cmocka_unit_test(test_find_in_a_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
