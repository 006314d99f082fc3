/* src/os/lock: mutual exclusion, the order of ranks, and fork. */
#include "os/lock.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>

#include "child.h"

enum { THREADS = 4, ROUNDS = 20000 };

static struct lock heaps = {.rank = LOCK_RANK_HEAPS}, ranges = {.rank = LOCK_RANK_RANGES};
static struct counters counters;
static uint64_t shared; /* under `ranges` */

static void *count_up(void *argument) {
  struct counters *own = argument;
  for (unsigned round = 0; round < ROUNDS; round++) {
    lock_take(&ranges, own);
    shared++;
    lock_give(&ranges);
  }
  return NULL;
}

TEST(one_at_a_time) {
  static struct counters own[THREADS];
  on_threads(THREADS, count_up, own, sizeof own[0]);
  assert_int_equal(shared, THREADS * ROUNDS);
  for (unsigned index = 0; index < THREADS; index++)
    assert_int_equal(load_relaxed(&own[index].value[COUNT_lock_acquisitions]), ROUNDS);
  assert_int_equal(load_relaxed(&ranges.word), 0);
}

CHILD_TEST(take_in_order) {
  lock_take(&heaps, &counters);
  lock_take(&ranges, &counters);
  lock_give(&ranges);
  lock_give(&heaps);
}

REPORT_TEST(take_in_the_wrong_order, "hakmem: assertion failed: ", "ranks_held") {
  lock_take(&ranges, &counters);
  lock_take(&heaps, &counters);
}

REPORT_TEST(take_twice, "hakmem: assertion failed: ", "ranks_held") {
  struct lock second = {.rank = LOCK_RANK_RANGES};
  lock_take(&ranges, &counters);
  lock_take(&second, &counters); /* two of one rank could meet two others the other way round */
}

/* A lock that nobody can give back. */
CHILD_TEST(reset) {
  lock_take(&ranges, &counters);
  REQUIRE(lock_reset_in_child(&ranges) && !lock_reset_in_child(&ranges));
  REQUIRE(load_relaxed(&ranges.word) == 0);
  REQUIRE(!lock_reset_in_child(&heaps));
}

/* ---- real-time threads ----------------------------------------------------------------------- */

/* On one processor a thread of lower priority holds what one of real-time priority waits for,
 * while a third, of a priority in between, never sleeps: the kernel lets such a thread run for
 * 0.95 s at a time, or for ever (sched(7)). A fourth, ordinary one may sleep already. */
enum { HIGH_PRIORITY = 10, MIDDLE_PRIORITY = 5, HOLD_MS = 20, STALL_MS = 500, HOG_MS = 1500 };

static ATOMIC(uint32_t) wanted;
static ATOMIC(bool) has_waited;
static sem_t is_held, is_waited_for;
static ATOMIC(uint64_t) waited_ms; /* of the last that waited */

static uint64_t ms_since(uint64_t start_ns) { return (os_now_ns() - start_ns) / 1000000; }

static void *wait_for_it(void *unused) {
  uint64_t start_ns = os_now_ns();
  word_wait(&wanted);
  store_relaxed(&waited_ms, ms_since(start_ns));
  word_give(&wanted);
  return unused;
}

static void *wait_in_real_time(void *unused) {
  sem_wait(&is_held);
  sem_post(&is_waited_for); /* the other runs as soon as this one sleeps */
  wait_for_it(NULL);
  store_release(&has_waited, true);
  return unused;
}

static void *never_sleep(void *unused) {
  sem_wait(&is_waited_for);
  for (uint64_t start_ns = os_now_ns(); !load_acquire(&has_waited) && ms_since(start_ns) < HOG_MS;)
    cpu_relax();
  return unused;
}

/* False where real-time priorities are refused. */
static bool start_in_real_time(pthread_t *thread, void *(*body)(void *), int number) {
  struct sched_param priority = {.sched_priority = number};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
  pthread_attr_setschedparam(&attributes, &priority);
  bool is_started = pthread_create(thread, &attributes, body, NULL) == 0;
  pthread_attr_destroy(&attributes);
  return is_started;
}

static cpu_set_t stay_on_one_processor(void) {
  cpu_set_t before, processor;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&processor);
  CPU_SET((size_t)sched_getcpu(), &processor);
  assert_int_equal(sched_setaffinity(0, sizeof processor, &processor), 0);
  return before;
}

/* A thread that waits for the word, and sleeps by now. */
static pthread_t start_sleeper(void) {
  pthread_t sleeper;
  assert_int_equal(pthread_create(&sleeper, NULL, wait_for_it, NULL), 0);
  while (!(load_relaxed(&wanted) & ~(uint32_t)WORD_HOLDER_MASK)) os_sleep_ms(1);
  os_sleep_ms(5);
  return sleeper;
}

static void hold_for_a_while(void) {
  sem_post(&is_held); /* the waiting thread runs at once, instead of this one */
  for (uint64_t start_ns = os_now_ns(); ms_since(start_ns) < HOLD_MS;) cpu_relax();
  word_give(&wanted);
}

static void lend_the_priority(bool others_sleep) {
  pthread_t sleeper, waiter, hog;
  assert_int_equal(sem_init(&is_held, 0, 0) + sem_init(&is_waited_for, 0, 0), 0);
  store_relaxed(&has_waited, false);
  cpu_set_t before = stay_on_one_processor(); /* new threads inherit it */
  if (!start_in_real_time(&waiter, wait_in_real_time, HIGH_PRIORITY)) {
    sched_setaffinity(0, sizeof before, &before);
    skip();
  }
  assert_true(start_in_real_time(&hog, never_sleep, MIDDLE_PRIORITY));
  assert_true(word_try(&wanted, thread_number()));
  if (others_sleep) sleeper = start_sleeper();
  hold_for_a_while();
  pthread_join(waiter, NULL);
  uint64_t in_real_time_ms = load_relaxed(&waited_ms);
  pthread_join(hog, NULL);
  if (others_sleep) pthread_join(sleeper, NULL);
  sched_setaffinity(0, sizeof before, &before);
  assert_true(in_real_time_ms < STALL_MS);
  assert_true(load_relaxed(&waited_ms) < HOG_MS); /* the ordinary one was woken */
}

TEST(holder_gets_the_priority) { lend_the_priority(false); }
TEST(holder_gets_the_priority_while_others_sleep) { lend_the_priority(true); }

/* A thread that sleeps when the program is confined is woken, and so is one that sleeps later. */
BARE_TEST(wake_in_a_confined_program) {
  for (unsigned round = 0; round < 2; round++) {
    REQUIRE(word_try(&wanted, thread_number()));
    pthread_t sleeper = start_sleeper();
    os_confine();
    word_give(&wanted);
    pthread_join(sleeper, NULL);
    REQUIRE(load_relaxed(&waited_ms) < HOG_MS);
  }
}

/* ---- many that wait -------------------------------------------------------------------------- */

/* Each thread that waits costs a processor its look at the word: thousands, who look every 50 ms,
 * all of them. A word that the kernel hands over is nearly always held by a thread that does not
 * run. */
enum { LONG_MS = 2000, LOOKS_MAX = 30 }; /* every 50 ms: 80, with a sleep after each */

static long sleeps;

static void *wait_long(void *unused) {
  struct rusage before, after;
  struct sched_param no_priority = {0};
  sched_setscheduler(0, SCHED_IDLE, &no_priority);
  getrusage(RUSAGE_THREAD, &before);
  word_wait(&wanted);
  getrusage(RUSAGE_THREAD, &after);
  word_give(&wanted);
  sleeps = after.ru_nvcsw - before.ru_nvcsw;
  return unused;
}

TEST(who_waits_long_looks_less_often) {
  pthread_t thread;
  cpu_set_t before = stay_on_one_processor();
  assert_true(word_try(&wanted, thread_number()));
  assert_int_equal(pthread_create(&thread, NULL, wait_long, NULL), 0);
  os_sleep_ms(LONG_MS);
  word_give(&wanted);
  bool is_handed_over = !word_try(&wanted, thread_number()); /* it does not run yet */
  if (!is_handed_over) word_give(&wanted);
  pthread_join(thread, NULL);
  sched_setaffinity(0, sizeof before, &before);
  assert_true(sleeps >= 1 && sleeps <= LOOKS_MAX && !is_handed_over);
}
