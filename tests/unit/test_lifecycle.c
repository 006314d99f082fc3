/* src/heap/thread, fork, library: heaps of threads: made, taken over, borrowed, forked. */
#include "cache/caches.h"
#include "heap/fork.h"
#include "heap/thread.h"
#include "reclaim/reclaim.h"

#include "heaps.h"

BEFORE(child) { start_library(); }
enum { BLOCKS = 3000 };

static void *blocks[BLOCKS];

static void *make_blocks(void *unused) {
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(64);
  return unused;
}

static void *free_blocks(void *unused) {
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  return unused;
}

CHILD_TEST(recycle_heaps) {
  uint64_t created = counted(COUNT_heaps_created);
  for (unsigned thread = 0; thread < 200; thread++)
    on_a_thread(make_blocks, NULL), free_blocks(NULL);
  struct snapshot snapshot = look();
  REQUIRE(snapshot.counters[COUNT_heaps_created] ==
          created + 2); /* one after the other: one heap, and the starter heap */
  REQUIRE(snapshot.counters[COUNT_heaps_recycled] == 199);
  REQUIRE(snapshot.counters[COUNT_heaps_parked] == 200);
  REQUIRE(snapshot.superslabs == 1);
}

/* Blocks of an ended thread serve others (M5). */
CHILD_TEST(reuse_orphans) {
  on_a_thread(make_blocks, NULL);
  for (unsigned index = 0; index < BLOCKS; index += 2) hak_free(blocks[index]);
  hak_purge(true); /* sends home what this thread's magazines hold */
  for (unsigned index = 0; index < BLOCKS; index += 2) blocks[index] = must_malloc(64);
  REQUIRE(counted(COUNT_refill_orphan) > 0 && counted(COUNT_acquire_os) == 1);
  free_blocks(NULL);
  hak_purge(true);
  REQUIRE(look().slab_bytes_out == 0);
}

/* ---- after the heap is gone ------------------------------------------------------------------ */

static pthread_key_t late_key;
static unsigned late_calls;

/* Runs in every round of destructors, those after hakmem's own included, as C++ and libraries
 * do. */
static void allocate_late(void *block) {
  hak_free(block);
  void *next = must_malloc(100);
  if (++late_calls < 4)
    pthread_setspecific(late_key, next);
  else
    hak_free(next);
}

static void *end_with_blocks(void *unused) {
  pthread_setspecific(late_key, must_malloc(5000));
  return unused;
}

CHILD_TEST(allocate_after_the_end) {
  pthread_key_create(&late_key, allocate_late);
  for (unsigned thread = 0; thread < 20; thread++) {
    late_calls = 0;
    on_a_thread(end_with_blocks, NULL);
    REQUIRE(late_calls == 4);
  }
  hak_purge(true);
  struct snapshot snapshot = look();
  REQUIRE(snapshot.slab_bytes_out == 0 && snapshot.counters[COUNT_heaps_created] <= 3);
}

static void *take_one(void *block) {
  *(void **)block = must_malloc(1024);
  return NULL;
}

/* A thread that waits keeps its live blocks only: its caches are empty, and another thread goes on
 * in its slab. */
CHILD_TEST(offer_what_is_free) {
  hak_thread_idle(); /* without a heap */
  void *kept = must_malloc(1024), *freed = must_malloc(1024);
  hak_free(freed);
  hak_thread_idle();
  REQUIRE(look().slab_bytes_out == 1024);
  REQUIRE(load_relaxed(&heap_of_thread->owner.state) == OWNER_DORMANT);
  void *other;
  on_a_thread(take_one, &other);
  REQUIRE(slab_of_block((uintptr_t)other) == slab_of_block((uintptr_t)kept));
  REQUIRE(load_relaxed(&slab_of_block((uintptr_t)kept)->owner) != &heap_of_thread->owner);
  REQUIRE(must_malloc(2048) && load_relaxed(&heap_of_thread->owner.state) == OWNER_RUNNING);
}

CHILD_TEST(borrow) {
  struct heap *first = heap_borrow(), *second = heap_borrow();
  REQUIRE(first && second && first != second && first->owner.tag != second->owner.tag);
  REQUIRE(first != heap_of_thread && second != heap_of_thread);
  caches_park(first);
  REQUIRE(heap_borrow() == first);
  caches_park(first);
  caches_park(second);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static pthread_barrier_t barrier;

static void *wait_while_forking(void *unused) {
  make_blocks(unused);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}

CHILD_TEST(go_on_in_the_child) {
  heaps_at_fork();
  pthread_t thread;
  pthread_barrier_init(&barrier, NULL, 2);
  REQUIRE(pthread_create(&thread, NULL, wait_while_forking, NULL) == 0);
  pthread_barrier_wait(&barrier);
  pid_t id = fork();
  if (id == 0) {
    free_blocks(NULL); /* of a thread that is not here */
    hak_purge(true);
    REQUIRE(counted(COUNT_heaps_parked) == 2 && /* the thread's and the starter heap's */
            look().slab_bytes_out == 0);
    make_blocks(NULL);
    _exit(0);
  }
  require_child_succeeded(id);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  free_blocks(NULL);
}

static void *have_a_heap(void *unused) {
  hak_free(must_malloc(MID_MAX_BYTES + 1)); /* a Large block needs one at once */
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return unused;
}

/* Each heap that is parked costs copies of its pages: a call of the child parks few, however many
 * the parent had. */
CHILD_TEST(park_few_in_a_call) {
  enum { THREADS = 40 };
  heaps_at_fork();
  pthread_t threads[THREADS];
  pthread_barrier_init(&barrier, NULL, THREADS + 1);
  for (unsigned index = 0; index < THREADS; index++)
    REQUIRE(pthread_create(&threads[index], NULL, have_a_heap, NULL) == 0);
  pthread_barrier_wait(&barrier);
  pid_t id = fork();
  if (id == 0) {
    for (unsigned call = 0; call < 2; call++) {
      uint64_t before = counted(COUNT_heaps_parked);
      if (call)
        REQUIRE(heap_borrow() != NULL);
      else
        reclaim(heap_of_thread, RECLAIM_TICK);
      uint64_t parked = counted(COUNT_heaps_parked) - before;
      REQUIRE(parked > 0 && parked <= 2);
    }
    hak_purge(true);
    REQUIRE(counted(COUNT_heaps_parked) >= THREADS);
    _exit(0);
  }
  require_child_succeeded(id);
  pthread_barrier_wait(&barrier);
  for (unsigned index = 0; index < THREADS; index++) pthread_join(threads[index], NULL);
}

/* What a child finds that was made without handlers while another thread adopted from this one's
 * heap. */
CHILD_TEST(leave_a_heap_that_another_was_changing) {
  heaps_at_fork();
  void *block = must_malloc(64);
  struct heap *own = heap_of_thread;
  store_relaxed(&own->owner.latch, thread_number() + 1);
  store_relaxed(&load_relaxed(&os_mark)->process_id, 0);
  REQUIRE(must_malloc(100000) && heap_of_thread != own);
  REQUIRE(load_relaxed(&own->owner.state) == OWNER_LOST && !os_is_copy());
  hak_free(block);
}

/* A window that moves while another thread maps a chunk of it would leave that one outside: it has
 * its place before another asks. */
BARE_TEST(place_the_window_before_others_come) {
  os_fake.occupied_places = 3;
  REQUIRE(heaps_ready() && load_relaxed(&window.granule_count));
  uintptr_t base = window.base;
  os_fake.occupied_places = 3;
  REQUIRE(must_malloc(64) && must_malloc(100000) && window.base == base);
}

/* What is refused then is asked for again by the next. */
BARE_TEST(place_the_window_once_there_is_memory) {
  os_fake_fail(OS_CALLS_ALL, 1, UINT64_MAX);
  REQUIRE(!heaps_ready() && !hak_malloc(1));
  os_fake.failing_kinds = 0;
  REQUIRE(must_malloc(64));
}
