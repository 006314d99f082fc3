/* Many threads at once on the real system, with fixed seeds; meant for the thread sanitizer.
 *
 * Every block carries a pattern made from its address and size, checked by whoever frees it: a
 * block handed out twice, or touched by hakmem while live, shows here; a missing edge of
 * synchronisation shows in the sanitizer. */
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "config/options.h"
#include "hakmem/hakmem.h"
#include "observe/report_glibc.h"
#include "observe/snapshot.h"
#include "slab/adopt.h"
#include "slab/record.h"
#include "unit.h"

enum { THREADS_MAX = 16, EXCHANGE_SLOTS = 512 };

static unsigned iterations_of_one = 100000; /* or the argument */

BEFORE(all) {
  if (unit.argument) iterations_of_one = (unsigned)strtoul(unit.argument, NULL, 10);
  hak_free(hak_malloc(1));   /* options are read once, before tests change them */
  options.helper_thread = 0; /* it would read them meanwhile */
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct block {
  uint64_t size;
  uint64_t pattern;
};

static uint64_t pattern_of(const struct block *block) {
  return (uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15) ^ block->size;
}

static struct block *make_block(size_t size) {
  if (size < sizeof(struct block)) size = sizeof(struct block);
  struct block *block = hak_malloc(size);
  if (!block) abort();
  block->size = size;
  block->pattern = pattern_of(block);
  return block;
}

static void free_block(struct block *block) {
  if (!block) return;
  if (block->pattern != pattern_of(block)) abort();
  block->pattern = 0;
  hak_free(block);
}

/* Mostly Tiny, some Mid, few Large, very few Big. */
static size_t random_size(uint64_t *random) {
  unsigned kind = (unsigned)random_below(random, 4096);
  if (kind < 2) return random_below(random, (size_t)3 << 20);
  if (kind < 16) return random_below(random, (size_t)256 << 10);
  if (kind < 400) return random_below(random, 8 << 10);
  return random_below(random, 512);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
  pthread_t thread;
  unsigned number, thread_count, iterations;
  uint64_t random;
};

static void run_threads(unsigned thread_count, unsigned iterations, void *(*body)(void *)) {
  struct worker workers[THREADS_MAX];
  for (unsigned number = 0; number < thread_count; number++) {
    workers[number] = (struct worker){.number = number,
                                      .thread_count = thread_count,
                                      .iterations = iterations,
                                      .random = 0x9e3779b9u + number * 7919u};
    assert_int_equal(pthread_create(&workers[number].thread, NULL, body, &workers[number]), 0);
  }
  for (unsigned number = 0; number < thread_count; number++)
    assert_int_equal(pthread_join(workers[number].thread, NULL), 0);
}

/* Iterations for everybody: all for one thread, fewer each for many. */
static unsigned share(unsigned thread_count) { return iterations_of_one * 8 / (thread_count + 7); }

/* ---- blocks that change hands ---------------------------------------------------------------- */

static ATOMIC(struct block *) exchange_slots[EXCHANGE_SLOTS];

static void free_exchanged(void) {
  for (unsigned slot = 0; slot < EXCHANGE_SLOTS; slot++)
    free_block(atomic_exchange(&exchange_slots[slot], NULL));
}

/* Puts new blocks where others take them: about every block is freed by another thread. */
static void *exchange_blocks(void *argument) {
  struct worker *worker = argument;
  for (unsigned iteration = 0; iteration < worker->iterations; iteration++) {
    size_t slot = random_below(&worker->random, EXCHANGE_SLOTS);
    struct block *block = make_block(random_size(&worker->random));
    free_block(atomic_exchange(&exchange_slots[slot], block));
  }
  return NULL;
}

/* ---- Route P --------------------------------------------------------------------------------- */

enum { IDLE_BLOCKS = 4096, IDLE_ROUNDS = 25 };

static struct block *idle_blocks[2][IDLE_BLOCKS];
static pthread_barrier_t idle_barrier;

/* Threads 0 and 1 own blocks and then wait outside hakmem, while the others free all of them and
 * allocate the same class. */
static void *own_then_idle(void *argument) {
  struct worker *worker = argument;
  struct block *mine[IDLE_BLOCKS / 2];
  for (unsigned round = 0; round < IDLE_ROUNDS; round++) {
    if (worker->number < 2)
      for (unsigned index = 0; index < IDLE_BLOCKS; index++)
        idle_blocks[worker->number][index] = make_block(64);
    pthread_barrier_wait(&idle_barrier);
    if (worker->number >= 2) {
      for (unsigned index = 0; index < IDLE_BLOCKS; index++)
        free_block(idle_blocks[worker->number - 2][index]);
      for (unsigned index = 0; index < IDLE_BLOCKS / 2; index++) mine[index] = make_block(64);
      for (unsigned index = 0; index < IDLE_BLOCKS / 2; index++) free_block(mine[index]);
    }
    pthread_barrier_wait(&idle_barrier);
  }
  return NULL;
}

/* The first test: with fresh heaps it is sure to be asked. */
TEST(route_p) {
  struct snapshot before, after;
  const bool is_on = options.route_p;
  const struct route_p conditions = route_p;
  options.route_p = true;
  route_p = (struct route_p){.remote_min = 1};
  snapshot_take(&before);
  pthread_barrier_init(&idle_barrier, NULL, 4);
  run_threads(4, 0, own_then_idle);
  pthread_barrier_destroy(&idle_barrier);
  snapshot_take(&after);
  assert_true(after.counters[COUNT_route_p_allowed] > before.counters[COUNT_route_p_allowed]);

  for (unsigned thread_count = 2; thread_count <= THREADS_MAX; thread_count *= 2)
    run_threads(thread_count, share(thread_count) / 2, exchange_blocks);
  free_exchanged();
  options.route_p = is_on;
  route_p = conditions;
}

/* ---- remote frees ---------------------------------------------------------------------------- */

TEST(remote_frees) {
  for (unsigned thread_count = 1; thread_count <= THREADS_MAX; thread_count *= 2)
    run_threads(thread_count, share(thread_count), exchange_blocks);
  free_exchanged();
}

/* ---- producers and consumers ----------------------------------------------------------------- */

enum { QUEUE_SLOTS = 256 };
static struct queue {
  CACHE_ALIGNED ATOMIC(struct block *) slots[QUEUE_SLOTS];
} queues[THREADS_MAX / 2];

static void produce(struct worker *worker, struct queue *queue) {
  for (unsigned iteration = 0; iteration < worker->iterations; iteration++) {
    ATOMIC(struct block *) *slot = &queue->slots[iteration % QUEUE_SLOTS];
    while (load_acquire(slot)) sched_yield();
    store_release(slot, make_block(16 + random_below(&worker->random, 240)));
  }
}

static void consume(struct worker *worker, struct queue *queue) {
  for (unsigned iteration = 0; iteration < worker->iterations; iteration++) {
    ATOMIC(struct block *) *slot = &queue->slots[iteration % QUEUE_SLOTS];
    struct block *block;
    while (!(block = load_acquire(slot))) sched_yield();
    store_release(slot, NULL);
    free_block(block);
  }
}

static void *produce_or_consume(void *argument) {
  struct worker *worker = argument;
  struct queue *queue = &queues[worker->number / 2];
  (worker->number % 2 ? consume : produce)(worker, queue);
  return NULL;
}

TEST(producers_and_consumers) {
  for (unsigned thread_count = 2; thread_count <= THREADS_MAX; thread_count *= 2)
    run_threads(thread_count, share(thread_count), produce_or_consume);
}

/* ---- threads that end ------------------------------------------------------------------------ */

enum { WAVES = 40, BLOCKS_PER_LIFE = 400 };

/* Leaves half its blocks to others, frees what it finds, and ends. */
static void *live_briefly(void *argument) {
  struct worker *worker = argument;
  for (unsigned made = 0; made < BLOCKS_PER_LIFE; made++) {
    struct block *block = make_block(random_size(&worker->random));
    size_t slot = random_below(&worker->random, EXCHANGE_SLOTS);
    if (made % 2) block = atomic_exchange(&exchange_slots[slot], block);
    free_block(block);
  }
  return NULL;
}

TEST(heaps_are_taken_over) {
  struct snapshot before, after;
  snapshot_take(&before);
  for (unsigned wave = 0; wave < WAVES; wave++) run_threads(8, 0, live_briefly);
  free_exchanged();
  snapshot_take(&after);
  assert_true(after.counters[COUNT_heaps_recycled] > before.counters[COUNT_heaps_recycled]);
}

/* ---- purging, resizing and looking on meanwhile ---------------------------------------------- */

static void resize_blocks(struct worker *worker) {
  struct block *block = make_block(64);
  for (unsigned iteration = 0; iteration < worker->iterations / 16; iteration++) {
    size_t size = 16 + random_size(&worker->random) * (iteration % 64 ? 1 : 64);
    struct block *resized = hak_realloc(block, size);
    if (!resized) abort();
    block = resized;
    block->size = size;
    block->pattern = pattern_of(block);
  }
  free_block(block);
}

static void purge_and_look(struct worker *worker) {
  enum { LOOKED_AROUND = 64 }; /* granules, of others' ranges: they are being cut and joined */
  static char json[1 << 16];
  static struct glibc_figures figures;
  for (unsigned iteration = 0; iteration < worker->iterations / 32; iteration++) {
    iteration % 8 == 1 ? hak_thread_idle() : (void)hak_purge(iteration % 4 == 0);
    struct block *block = make_block(random_size(&worker->random));
    for (size_t at = 0; at < LOOKED_AROUND; at++) hak_owns((char *)block + (at << GRANULE_SHIFT));
    if (!hak_owns(block)) abort();
    free_block(block);
    glibc_figures_take(&figures);
    /* Seldom: it reads of other threads what the figures do, and then writes text for most of the
     * time. */
    if (iteration % 8 == 0 && hak_stats_json(json, sizeof json) >= sizeof json) abort();
  }
}

static void *do_everything(void *argument) {
  struct worker *worker = argument;
  if (worker->number == 0)
    purge_and_look(worker);
  else if (worker->number == 1)
    resize_blocks(worker);
  else
    exchange_blocks(worker);
  return NULL;
}

/* In guard mode the ticker is there, and reads it meanwhile. */
static void set_decay(uint64_t decay_ms) {
  if (!options.guard) options.decay_ms = decay_ms;
}

TEST(purge_meanwhile) {
  const struct options defaults = options;
  set_decay(1); /* rounds of the other threads as well */
  for (unsigned thread_count = 4; thread_count <= THREADS_MAX; thread_count *= 2)
    run_threads(thread_count, share(thread_count) * 2, do_everything);
  free_exchanged();
  set_decay(defaults.decay_ms);
}

/* ---- neighbours in the pools ----------------------------------------------------------------- */

enum { CHURN_BLOCKS = 96 };

/* Slabs and ranges that are taken and given back whole, all the time, beside those of others. */
static void churn(struct worker *worker, size_t size_max) {
  struct block *blocks[CHURN_BLOCKS];
  for (unsigned round = 0; round < worker->iterations / CHURN_BLOCKS; round++) {
    for (unsigned index = 0; index < CHURN_BLOCKS; index++)
      blocks[index] = make_block(size_max / 2 + random_below(&worker->random, size_max / 2));
    for (unsigned index = 0; index < CHURN_BLOCKS; index++) free_block(blocks[index]);
  }
}

static void *churn_beside_others(void *argument) {
  static const size_t size_max[] = {8 << 10, 32 << 10, 512 << 10, 2 << 20};
  struct worker *worker = argument;
  if (worker->number == 0)
    purge_and_look(worker);
  else
    churn(worker, size_max[worker->number % 4]);
  return NULL;
}

TEST(churn_of_slabs_and_ranges) {
  const struct options defaults = options;
  set_decay(1);
  run_threads(8, iterations_of_one / 5, churn_beside_others);
  set_decay(defaults.decay_ms);
}

/* A purge looks at the ages of slots that others take and give back at that moment. */
static ATOMIC(bool) is_releasing;

static void *purge_or_release(void *argument) {
  enum { SLABS = 24, CLASS_64 = 4 };
  static struct counters counters;
  struct worker *worker = argument;
  struct slab *slabs[SLABS];
  for (unsigned round = 0; worker->number == 0 && round < worker->iterations; round++) {
    for (unsigned index = 0; index < SLABS; index++)
      slabs[index] = acquire_slab(CLASS_64, POOL_ALL, &counters);
    for (unsigned index = 0; index < SLABS; index++) release_slab(slabs[index], 0, &counters);
  }
  if (worker->number == 0) store_release(&is_releasing, false);
  while (load_acquire(&is_releasing)) {
    struct purge purge = {.decay_ms = UINT32_MAX, .calls_left = SIZE_MAX}; /* nothing is so old */
    slab_pool_purge(&purge);
  }
  return NULL;
}

TEST(purge_beside_releases) {
  store_relaxed(&is_releasing, true);
  run_threads(2, iterations_of_one / 10, purge_or_release);
}

/* Several threads find a size worth a class, while others take and free blocks of that size. */
static void *want_classes(void *argument) {
  enum { MANY = 2000 };
  static const size_t sizes[FITTED_CLASS_COUNT] = {264, 400, 1100, 2100};
  struct worker *worker = argument;
  struct block *mine[MANY];
  for (unsigned round = 0; round < FITTED_CLASS_COUNT; round++) {
    size_t size = sizes[(worker->number / 2 + round) % FITTED_CLASS_COUNT];
    for (unsigned index = 0; index < MANY; index++) mine[index] = make_block(size);
    for (unsigned index = 0; index < MANY; index++)
      free_block(atomic_exchange(&exchange_slots[index % EXCHANGE_SLOTS], mine[index]));
  }
  return NULL;
}

TEST(classes_are_made) {
  run_threads(8, 0, want_classes);
  free_exchanged();
  bool are_samples = *options.profile != '0'; /* most blocks: few requests come to a magazine */
  for (unsigned class = FITTED_CLASS_FIRST; class < SLAB_CLASS_COUNT; class ++)
    assert_true(class_bytes(class) || are_samples);
}

/* What is left when all is freed is not live: nothing was lost on the way. */
TEST(nothing_is_left) {
  struct snapshot snapshot;
  hak_purge(true);
  snapshot_take(&snapshot);
  assert_int_equal(snapshot.big_live_bytes, 0);
  assert_int_equal(snapshot.large_live_bytes, 0);
  assert_int_equal(snapshot.slab_bytes_out, 0);
}
