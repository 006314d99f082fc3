/* src/cache/starter.c, early_call: the first calls of new threads. */
#include "cache/starter.h"

#include "cache/caches.h"
#include "cache/capacity.h"
#include "heap/thread.h"
#include "heaps.h"

enum { CLASS_64 = 4, THREADS = 24 };

static const struct owner *owner_of(const void *block) {
  return load_relaxed(&slab_of_block((uintptr_t)block)->owner);
}

struct life {
  pthread_barrier_t *barrier;
  unsigned block_count;
  void *blocks[2 * EARLY_CALLS];
};

/* Allocates, waits until the others have too, and frees. */
static void *live(void *argument) {
  struct life *life = argument;
  for (unsigned index = 0; index < life->block_count; index++)
    life->blocks[index] = must_malloc(64);
  pthread_barrier_wait(life->barrier);
  pthread_barrier_wait(life->barrier);
  for (unsigned index = 0; index < life->block_count; index++) hak_free(life->blocks[index]);
  return NULL;
}

/* Runs threads that hold their blocks at one time while `check` looks at them. */
static void hold(unsigned block_count, void (*check)(struct life *lives)) {
  struct life lives[THREADS];
  pthread_t threads[THREADS];
  pthread_barrier_t barrier;
  REQUIRE(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
  for (unsigned index = 0; index < THREADS; index++) {
    lives[index] = (struct life){.barrier = &barrier, .block_count = block_count};
    REQUIRE(pthread_create(&threads[index], NULL, live, &lives[index]) == 0);
  }
  pthread_barrier_wait(&barrier);
  check(lives);
  pthread_barrier_wait(&barrier);
  for (unsigned index = 0; index < THREADS; index++)
    REQUIRE(pthread_join(threads[index], NULL) == 0);
  pthread_barrier_destroy(&barrier);
}

/* Mostly one: another serves while the latch's holder is preempted. */
static void require_few_owners(struct life *lives) {
  enum { STARTERS_LIKELY = 4, FIRST_THREAD = 1 };
  const struct owner *shared = owner_of(lives[0].blocks[0]);
  REQUIRE(counted(COUNT_heaps_created) <= STARTERS_LIKELY + FIRST_THREAD);
  REQUIRE(counted(COUNT_refill_starter) >= THREADS);
  REQUIRE(shared->bins[CLASS_64].slab_count == 1); /* for all of them */
}

static void require_own_slabs(struct life *lives) {
  for (unsigned life = 0; life < THREADS; life++) {
    unsigned last = lives[life].block_count - 1, shared = 0;
    const struct owner *own = owner_of(lives[life].blocks[last]);
    for (unsigned index = 0; index <= last; index++)
      shared += owner_of(lives[life].blocks[index]) != own;
    REQUIRE(shared <= EARLY_CALLS);
    for (unsigned before = 0; before < life; before++)
      REQUIRE(owner_of(lives[before].blocks[last]) != own);
  }
}

CHILD_TEST(share_the_first_blocks) {
  start_library();
  hold(4, require_few_owners);
}

CHILD_TEST(own_what_is_more) {
  start_library();
  hold(EARLY_CALLS + 24, require_own_slabs);
}

static void *outgrow(void *first) {
  void **block = first;
  *block = must_malloc(64);
  for (unsigned index = 1; index < 2 * EARLY_CALLS; index++) must_malloc(64);
  REQUIRE(owner_of(*block) == &heap_of_thread->owner);
  return NULL;
}

/* Who asks for more has the shared slab from then on, its first blocks and those of others in
 * it. */
CHILD_TEST(take_the_shared_slab_along) {
  void *first = NULL;
  start_library();
  uint64_t slabs = counted(COUNT_refill_new);
  on_a_thread(outgrow, &first);
  REQUIRE(counted(COUNT_refill_new) == slabs + 1);
  hak_free(first); /* the slab is the starter heap's no longer */
}

static void *take_300(void *block) {
  *(void **)block = must_malloc(300);
  return NULL;
}

static void *take(void *block_for) {
  void **block = block_for;
  size_t size = (size_t)*block;
  *block = must_malloc(size);
  size_t bytes = hak_malloc_usable_size(*block);
  REQUIRE(bytes >= size && !(bytes % CACHE_LINE_BYTES || (uintptr_t)*block % CACHE_LINE_BYTES));
  return NULL;
}

/* Classes that fit requests of threads' starts would cost each thread a slab; and a counter in a
 * shared line would be slow. */
CHILD_TESTS(share_slabs_and_no_line, size_t, size, 0, 1, 48, 80, 130, 224, 300, 700, 9000, 60000) {
  void *one = (void *)size, *other = one;
  start_library();
  REQUIRE(class_make_fitted(304) && class_make_fitted(144));
  on_a_thread(take, &one);
  on_a_thread(take, &other);
  REQUIRE(owner_of(one) == owner_of(other) && counted(COUNT_refill_starter) == 2);
}

/* Many cores would take the latch's line from each other. */
CHILD_TEST(share_within_a_group_of_processors) {
  enum { AGAIN = 16 * 16 }; /* more processors than groups */
  const unsigned processors[] = {16, 31, 32, 0, AGAIN};
  void *blocks[5];
  start_library();
  REQUIRE(!starter_is_there());
  for (unsigned index = 0; index < 5; index++) {
    os_fake.processor = processors[index];
    on_a_thread(take_300, &blocks[index]);
    REQUIRE(starter_is_there()); /* whichever is made first */
  }
  REQUIRE(owner_of(blocks[0]) == owner_of(blocks[1]) && owner_of(blocks[3]) == owner_of(blocks[4]));
  REQUIRE(owner_of(blocks[0]) != owner_of(blocks[2]) && owner_of(blocks[0]) != owner_of(blocks[3]));
  REQUIRE(owner_of(blocks[2]) != owner_of(blocks[3]));
}

static void *go_on_as(void *latch_of) {
  struct heap *held = latch_of;
  latch_take(&held->owner); /* its holder is preempted */
  const struct owner *next = owner_of(must_malloc(64));
  latch_give(&held->owner);
  REQUIRE(next != &held->owner);
  return NULL;
}

CHILD_TEST(go_on_beside_a_preempted_one) {
  void *block = NULL;
  start_library();
  os_fake.processor = 255; /* of the last group, after which comes the first */
  on_a_thread(take_300, &block);
  on_a_thread(go_on_as, heap_of_owner(load_relaxed(&slab_of_block((uintptr_t)block)->owner)));
}

static const struct owner *home;

/* A block that it gets is nobody's neighbour: the one that it was handed goes home. */
static void *be_handed(void *block) {
  hak_free(block);
  void *own = must_malloc(64);
  REQUIRE(own != block && owner_of(own) != home && !heap_is_real(heap_of_thread));
  hak_free(own);
  return NULL;
}

CHILD_TEST(send_the_first_home) {
  start_library();
  void *block = must_malloc(64);
  home = owner_of(block);
  on_a_thread(be_handed, block);
  REQUIRE(counted(COUNT_remote_freed_blocks) >= 1 && hak_malloc(64) != block);
}

/* A thread that only frees has a heap after more calls: a free must not be the call that gets it
 * one, or a block of a shared slab would stay with it. */
static void *free_many(void *blocks) {
  for (unsigned index = 0; index <= EARLY_FREES; index++) {
    REQUIRE(heap_is_real(heap_of_thread) == false);
    hak_free(((void **)blocks)[index]);
  }
  REQUIRE(heap_is_real(heap_of_thread));
  return NULL;
}

CHILD_TEST(free_without_a_heap) {
  static void *blocks[EARLY_FREES + 1];
  start_library();
  for (unsigned index = 0; index <= EARLY_FREES; index++) blocks[index] = must_malloc(64);
  on_a_thread(free_many, blocks);
  REQUIRE(counted(COUNT_remote_freed_blocks) == EARLY_FREES + 1);
}

static void *take_over_an_open_magazine(void *unused) {
  hak_free(must_malloc(64));
  struct heap *left = heap_borrow();
  capacity_note_miss(left, CLASS_64, MAGAZINE_FLUSHED);
  caches_park(left);
  hak_free(must_malloc(MID_MAX_BYTES + 1));
  REQUIRE(heap_of_thread == left && !magazine_capacity(&left->magazines[CLASS_64]));
  return unused;
}

/* The next free of the class is to see whether the block was freed just before. */
CHILD_TEST(close_the_class_freed_last) {
  start_library();
  on_a_thread(take_over_an_open_magazine, NULL);
}

static void *have_a_heap_at_once(void *size) {
  hak_free(must_malloc(*(size_t *)size));
  REQUIRE(heap_is_real(heap_of_thread));
  return NULL;
}

/* The last is a heap that an ended thread left: it costs nothing. */
enum need { NEED_RANGE, NEED_GUARD, NEED_PROFILE, NEED_NOTHING };

CHILD_TESTS(need_a_heap, enum need, need, NEED_RANGE, NEED_GUARD, NEED_PROFILE, NEED_NOTHING) {
  size_t size = need == NEED_RANGE ? MID_MAX_BYTES + 1 : 64;
  start_library();
  options.guard = need == NEED_GUARD;
  if (need == NEED_PROFILE) hak_profile_start(0);
  if (need == NEED_NOTHING) caches_park(heap_borrow());
  on_a_thread(have_a_heap_at_once, &size);
  REQUIRE(counted(COUNT_refill_starter) == 0);
}

static void *free_only(void *blocks) {
  for (unsigned index = 0; index < 4; index++) hak_free(((void **)blocks)[index]);
  return NULL;
}

/* The C library frees while it holds a lock that starting a thread needs. */
CHILD_TEST(start_no_thread_in_a_free) {
  static void *blocks[4];
  start_library();
  for (unsigned index = 0; index < 4; index++) blocks[index] = must_malloc(64);
  options.helper_thread = 1;
  on_a_thread(free_only, blocks);
  REQUIRE(load_relaxed(&os_fake.calls[OS_CALL_THREAD_START]) == 0);
}

/* The first thread, and a process of one thread, never share. */
CHILD_TEST(leave_the_first_alone) {
  start_library();
  for (unsigned index = 0; index < 100; index++) must_malloc(64);
  REQUIRE(counted(COUNT_refill_starter) == 0);
}

static void *allocate_and_free(void *unused) {
  for (unsigned size = 16; size <= 1024; size += 16) hak_free(must_malloc(size));
  return unused;
}

/* What comes back is used by the next one: nothing piles up, even when the heap that all take over
 * has slabs of its own. */
CHILD_TEST(reuse) {
  start_library();
  for (unsigned round = 0; round < 20; round++) on_a_thread(allocate_and_free, NULL);
  uint64_t slabs = counted(COUNT_refill_new);
  for (unsigned round = 0; round < 100; round++) on_a_thread(allocate_and_free, NULL);
  REQUIRE(counted(COUNT_refill_new) == slabs);
}

/* Numbers of granules that do not fit 32 bits; by a thread's first call. */
static void *refuse(void *size) {
  REQUIRE(hak_malloc(*(size_t *)size) == NULL && errno == ENOMEM);
  return NULL;
}

BARE_TEST(refuse_what_wraps) {
  start_library();
  for (unsigned granules = 0; granules < CLASS_COUNT; granules++) {
    size_t size = ((size_t)1 << 48) - granules * GRANULE_BYTES;
    on_a_thread(refuse, &size);
  }
}
