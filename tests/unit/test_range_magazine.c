/* src/ranges/range_magazine: a thread's own freed Large ranges, which others can empty. */
#include "ranges/range_magazine.h"

#include <sched.h>

#include "cache/divert.h"
#include "heaps.h"
#include "ranges.h"
#include "ranges/large.h"

/* Before the process grows: the cache and the own magazines; those of others, but not for each
 * little growth. */
CHILD_TEST(merge_before_growth) {
  struct range_magazines *own = range_magazines_make(), *others = range_magazines_make();
  for (unsigned turn = 0; turn < 2; turn++) {
    range_cache_give(fresh(7), CLASS, &counters);
    REQUIRE(range_magazine_keep(own, CLASS, 0, fresh(7)));
    REQUIRE(range_magazine_keep(others, CLASS, 0, fresh(7)));
    REQUIRE(range_magazines_merge(own, turn ? 64 << 10 : 1 << 20, &counters));
    REQUIRE(dirty_granules() == (turn ? 5 : 3) * GRANULES);
    REQUIRE((range_magazine_take(others, CLASS, 0) == NO_GRANULE) == (turn == 0));
  }
}

/* ---- magazines ------------------------------------------------------------------------------- */

CHILD_TEST(keep_in_a_magazine) {
  os_fake.is_multi_threaded = false; /* so the barrier, which is refused, is not asked for */
  os_fake.is_confined = true;
  struct range_magazines *own = range_magazines_make();
  for (unsigned class = SLAB_CLASS_COUNT; class < CLASS_COUNT; class ++) {
    size_t granules = large_granules_of_class(class), kept = 0;
    while (range_magazine_keep(own, class, 0, fresh_of(granules, 7))) kept++;
    REQUIRE(kept == range_magazine_row(own, class, 0).count && kept <= RANGE_MAGAZINE_SLOTS);
    REQUIRE(kept == 2 || kept * class_bytes(class) <= 2 << 20);
    while (range_magazine_take(own, class, 0) != NO_GRANULE) kept--;
    REQUIRE(kept == 0);
  }
  REQUIRE(load_relaxed(&own->bytes) == 0 && load_relaxed(&biased_have_barrier));
}

/* Where ends count, a range is taken for blocks that end where it did.  What was kept before is
 * found by a round. */
CHILD_TEST(keep_by_ends) {
  struct purge everything = PURGE_EVERYTHING;
  struct range_magazines *own = range_magazines_make();
  for (unsigned kept = 0; kept < RANGE_MAGAZINE_SLOTS; kept++)
    REQUIRE(range_magazine_keep(own, CLASS, kept % RANGE_ENDS, fresh(7)));
  store_relaxed(&density_end_mask, RANGE_ENDS - 1);
  for (unsigned end = 2; end < RANGE_ENDS; end++) {
    size_t granules[END_SLOTS];
    REQUIRE(range_magazine_take(own, CLASS, end) == NO_GRANULE);
    for (unsigned slot = 0; slot < END_SLOTS; slot++)
      REQUIRE(range_magazine_keep(own, CLASS, end, granules[slot] = fresh(7)));
    REQUIRE(!range_magazine_keep(own, CLASS, end, fresh(7)));
    REQUIRE(range_magazine_take(own, CLASS, end) == granules[0]);
  }
  store_relaxed(&density_end_mask, 0);
  uint64_t kept_bytes = RANGE_MAGAZINE_SLOTS + (RANGE_ENDS - 2) * (END_SLOTS - 1);
  REQUIRE(load_relaxed(&own->bytes) == kept_bytes * class_bytes(CLASS));
  range_magazines_purge(&everything, &counters);
  REQUIRE(load_relaxed(&own->bytes) == 0 && dirty_granules() == kept_bytes * GRANULES);
}

/* While another thread is at them, or they are closed. */
CHILD_TEST(leave_alone_what_is_in_use) {
  struct purge everything = PURGE_EVERYTHING;
  struct range_magazines *own = range_magazines_make();
  struct biased *lock = &own->lock;
  REQUIRE(range_magazine_keep(own, CLASS, 0, fresh(7)) && biased_take(lock));
  range_magazines_purge(&everything, &counters);
  REQUIRE(everything.work_remains && dirty_granules() == 0);
  biased_give(lock);
  store_relaxed(&lock->is_closed, 1);
  REQUIRE(range_magazine_take(own, CLASS, 0) == NO_GRANULE && !load_relaxed(&lock->is_used));
  REQUIRE(!range_magazine_keep(own, CLASS, 0, fresh(7)));
  range_magazines_purge(&everything, &counters);
  REQUIRE(dirty_granules() == 0);
  store_relaxed(&lock->is_closed, 0);
  range_magazines_purge(&everything, &counters);
  REQUIRE(dirty_granules() == GRANULES && load_relaxed(&own->bytes) == 0);
}

/* A program that is confined since its threads were told that they need no barrier: one of them may
 * be entering as it always did, and what it has stored may not be seen yet. */
CHILD_TEST(leave_alone_once_the_barrier_is_refused) {
  struct range_magazines *own = range_magazines_make();
  REQUIRE(range_magazine_keep(own, CLASS, 0, fresh(7)));
  if (!load_relaxed(&biased_have_barrier)) return; /* this kernel has none */
  os_fake.is_confined = true;
  for (unsigned turn = 0; turn < 2; turn++) {
    struct purge everything = PURGE_EVERYTHING;
    range_magazines_purge(&everything, &counters);
    REQUIRE(everything.work_remains && dirty_granules() == 0);
    REQUIRE(!load_relaxed(&biased_have_barrier) && !load_relaxed(&own->lock.is_closed));
  }
  struct purge everything = PURGE_EVERYTHING;
  os_fake_advance_ms(100);
  range_magazines_purge(&everything, &counters);
  REQUIRE(dirty_granules() == GRANULES);
}

/* A child of vfork is its parent's thread; if it is killed while it empties magazines, its parent
 * goes on with them. */
CHILD_TEST(go_on_after_a_child_of_vfork) {
  struct purge everything = PURGE_EVERYTHING;
  struct range_magazines *own = range_magazines_make();
  REQUIRE(range_magazine_keep(own, CLASS, 0, fresh(7)));
  pid_t child = vfork();
  if (child == 0) {
    store_relaxed(&own->lock.is_closed, thread_number()); /* as biased_close does */
    _exit(0);
  }
  REQUIRE(child > 0 && load_relaxed(&own->lock.is_closed) == thread_number());
  range_magazines_purge(&everything, &counters);
  REQUIRE(dirty_granules() == GRANULES && !load_relaxed(&own->lock.is_closed));
}

static struct range_magazines *make_with_one(uint32_t age_ms) {
  struct range_magazines *made = range_magazines_make();
  size_t granule = fresh(7);
  REQUIRE(made != NULL);
  range_info(granule)->stamp_ms -= age_ms;
  REQUIRE(range_magazine_keep(made, CLASS, 0, granule));
  return made;
}

static bool purge_step(void) {
  struct purge step = PURGE_EVERYTHING;
  step.calls_left = 96;
  range_magazines_purge(&step, &counters);
  return step.is_cut;
}

/* More than are closed at once: a round of all comes to all, a step to some, and the next goes
 * on. */
CHILD_TEST(empty_many) {
  enum { MANY = 100 };
  struct purge everything = PURGE_EVERYTHING;
  struct range_magazines *all[MANY];
  for (unsigned index = 0; index < MANY; index++) all[index] = make_with_one(0);
  REQUIRE(purge_step() && dirty_granules() < MANY * GRANULES);
  REQUIRE(!purge_step() && dirty_granules() == MANY * GRANULES);
  for (unsigned index = 0; index < MANY; index++)
    REQUIRE(range_magazine_keep(all[index], CLASS, 0, fresh(7)));
  range_magazines_purge(&everything, &counters);
  REQUIRE(dirty_granules() == 2 * MANY * GRANULES);
}

/* The pages of these records, but for the first and the last, which hold others, too.  They may lie
 * in two chunks. */
static bool protect(struct range_magazines **all, unsigned count, int protection) {
  uintptr_t page_bytes = os_page_bytes(), first = round_down((uintptr_t)all[0], page_bytes),
            last = round_down((uintptr_t)all[count - 1], page_bytes);
  unsigned pages = 0;
  for (unsigned index = 0; index < count; index++) {
    uintptr_t page = round_down((uintptr_t)all[index], page_bytes);
    if (page == first || page == last) continue;
    if (mprotect((void *)page, page_bytes, protection) != 0) return false;
    pages++;
  }
  return pages;
}

/* Threads that have freed a Large block once, and have none now, are not even looked at: their
 * pages are closed meanwhile. */
CHILD_TEST(pass_by_those_that_hold_nothing) {
  enum { MANY = 200 };
  struct range_magazines *all[MANY];
  size_t granules[MANY + 3];
  for (unsigned index = 0; index < MANY + 3; index++) granules[index] = fresh(7);
  struct range_magazines *holder = range_magazines_make();
  for (unsigned index = 0; index < MANY; index++) {
    all[index] = range_magazines_make();
    REQUIRE(range_magazine_keep(all[index], CLASS, 0, granules[index]));
  }
  while (purge_step()) {
  }
  REQUIRE(dirty_granules() == MANY * GRANULES);
  for (unsigned turn = 0; turn < 2; turn++) {
    REQUIRE(range_magazine_keep(holder, CLASS, 0, granules[MANY + turn]));
    REQUIRE(protect(all, MANY, PROT_NONE));
    if (turn) {
      REQUIRE(range_magazines_merge(NULL, 1 << 20, &counters));
    } else {
      REQUIRE(!purge_step());
    }
    REQUIRE(protect(all, MANY, PROT_READ | PROT_WRITE));
    REQUIRE(dirty_granules() == (MANY + turn + 1) * GRANULES);
  }
  REQUIRE(range_magazine_keep(all[MANY / 2], CLASS, 0, granules[MANY + 2]) && !purge_step());
  REQUIRE(dirty_granules() == (MANY + 3) * GRANULES && range_magazines_bytes() == 0);
}

/* A round without bounds comes to all, wherever others have stopped, and however many calls it has
 * done before. */
CHILD_TEST(empty_all_from_the_middle) {
  enum { MANY = 200 };
  struct purge everything = PURGE_EVERYTHING;
  struct range_magazines *all[MANY];
  for (unsigned index = 0; index < MANY; index++) all[index] = make_with_one(0);
  REQUIRE(purge_step());
  for (unsigned index = 0; index < MANY; index++)
    if (!load_relaxed(&all[index]->bytes))
      REQUIRE(range_magazine_keep(all[index], CLASS, 0, fresh(7)));
  purge_note_call(&everything);
  range_magazines_purge(&everything, &counters);
  REQUIRE(range_magazines_bytes() == 0 && !everything.is_cut && !everything.work_remains);
}

/* Of a round in parts the first finds what is too young, the last one nothing of the kind: there is
 * something left. */
CHILD_TEST(tell_of_what_the_first_part_left) {
  enum { OLD = 10, YOUNG = 64, AGE_MS = 1000 };
  for (unsigned index = 0; index < OLD; index++) make_with_one(AGE_MS);
  for (unsigned index = 0; index < YOUNG; index++) make_with_one(0); /* the first in the list */
  struct purge part = {
      .now_ms = (uint32_t)os_now_coarse_ms(), .decay_ms = AGE_MS, .calls_left = 96};
  do {
    part.is_cut = part.work_remains = false;
    range_magazines_purge(&part, &counters);
  } while (part.is_cut);
  REQUIRE(range_magazines_bytes() == YOUNG * class_bytes(CLASS) && part.work_remains);
  part.now_ms += AGE_MS;
  for (unsigned rounds = 0; part.work_remains; rounds++) {
    REQUIRE(rounds < 8);
    part.is_cut = part.work_remains = false;
    range_magazines_purge(&part, &counters);
  }
  REQUIRE(range_magazines_bytes() == 0);
}

/* ---- as malloc and free come by -------------------------------------------------------------- */

BARE_TEST(serve_whoever_asks) {
  start_library();
  hak_free(must_malloc(200000)); /* the thread has its magazines */
  void *block = must_malloc(200000);
  hak_free(block);
  uint64_t allocs = counted(COUNT_large_allocs);
  REQUIRE(must_malloc(200000) == block && counted(COUNT_large_allocs) == allocs);
}

/* A program with one thread whose requests all come from its magazines gives back by age all the
 * same. */
BARE_TEST(give_back_without_a_slow_path) {
  enum { BLOCKS = 24, TURNS = 40 }; /* too little to be excess */
  void *blocks[BLOCKS];
  os_fake.is_multi_threaded = false;
  start_library();
  hak_free(must_malloc(100000));
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(500 << 10);
  for (unsigned index = 0; index < BLOCKS; index++) hak_free(blocks[index]);
  uint64_t before = look().committed_bytes;
  for (unsigned turn = 0; turn < TURNS; turn++) {
    os_fake_advance_ms(options.decay_ms / 8);
    hak_free(must_malloc(100000));
  }
  REQUIRE(look().committed_bytes < before - (BLOCKS / 2) * (500 << 10));
}

/* A thread that was called gives back what it frees: excess waits for it. */
BARE_TEST(keep_nothing_once_called) {
  start_library();
  hak_free(must_malloc(200000));
  REQUIRE(range_magazines_bytes() == class_bytes(class_of_size(200000)));
  void *block = must_malloc(200000);
  heap_divert(heap_of_thread, HEAP_POKE);
  hak_free(block);
  REQUIRE(range_magazines_bytes() == 0 && !heap_attention(heap_of_thread));
}

/* A call is answered once, by any slow path, and the divert ends with the next free of a small
 * block. */
BARE_TEST(answer_a_call) {
  start_library();
  const struct magazine *magazine = &heap_of_thread->magazines[class_of_size(64)];
  for (unsigned is_free = 0; is_free < 2; is_free++) {
    void *block = is_free ? must_malloc(200000) : NULL;
    hak_free(must_malloc(64));
    REQUIRE(magazine_count(magazine) && !heap_attention(heap_of_thread));
    heap_divert(heap_of_thread, HEAP_CALL);
    if (!is_free) block = must_malloc(300000);
    REQUIRE((heap_attention(heap_of_thread) == HEAP_CALL) == is_free);
    hak_free(block);
    REQUIRE(!magazine_count(magazine) && heap_attention(heap_of_thread) != HEAP_CALL);
  }
  hak_free(must_malloc(64));
  REQUIRE(!heap_attention(heap_of_thread));
}

static void *free_and_end(void *block) {
  hak_free(block);
  return NULL;
}

BARE_TEST(serve_after_a_thread_ended) {
  start_library();
  void *block = must_malloc(200000);
  on_a_thread(free_and_end, block);
  REQUIRE(must_malloc(200000) == block);
}

/* Blocks of one class that are cached, side by side, become one of another before the process
 * grows. */
BARE_TEST(merge_for_another_class) {
  enum { BLOCKS = 64, TURNS = 8 };
  void *blocks[BLOCKS];
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
  REQUIRE(take_cached(CLASS, 7) == NO_GRANULE);
}

/* A freed block is nobody's until it is taken again: no free of it goes unnoticed. */
BARE_TEST(notice_a_second_free) {
  start_library();
  void *blocks[3];
  for (unsigned index = 0; index < 3; index++) blocks[index] = must_malloc(100000);
  for (unsigned index = 0; index < 3; index++) {
    hak_free(blocks[index]);
    REQUIRE(!map_entry_is_live(owner_map_entry((uintptr_t)blocks[index])));
  }
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
BARE_TEST(free_at_once) {
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
  REQUIRE(pthread_join(thread, NULL) == 0);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void *purge_until_stopped(void *unused) {
  struct purge everything = PURGE_EVERYTHING;
  range_cache_purge(&everything, &counters);
  return unused;
}

static int go_on_in_the_child(size_t lost, struct range_magazines *used) {
  signal(SIGSEGV, SIG_DFL);
  protect_record(lost, PROT_READ | PROT_WRITE);
  range_magazines_after_fork();
  REQUIRE(take_cached(CLASS, 7) == NO_GRANULE);
  range_cache_give(fresh(7), CLASS, &counters);
  REQUIRE(take_cached(CLASS, 7) != NO_GRANULE);
  REQUIRE(range_magazine_take(used, CLASS, 0) != NO_GRANULE);
  return 0;
}

/* A thread is cut off after it has filled a slot, or emptied one. */
CHILD_TEST(count_anew_in_a_child) {
  struct range_magazines *one = make_with_one(0), *other = make_with_one(0);
  store_relaxed(&one->bytes, 0);
  store_relaxed(&one->lock.is_used, 1);
  store_relaxed(&other->bytes, 2 * class_bytes(CLASS));
  store_relaxed(&other->lock.is_closed, 1);
  range_magazines_after_fork();
  REQUIRE(range_magazines_bytes() == 2 * class_bytes(CLASS));
  purge_step();
  REQUIRE(dirty_granules() == 2 * GRANULES && range_magazines_bytes() == 0);
}

/* In the child a thread is cut off while it has a row, and another while it is at its magazines. */
CHILD_TEST(go_on_in_a_child) {
  os_fake.is_multi_threaded = true;
  struct range_magazines *used = range_magazines_make();
  REQUIRE(range_magazine_keep(used, CLASS, 0, fresh(7)) && biased_take(&used->lock));
  fresh_of((size_t)8 * GRANULES_PER_CHUNK, 7);
  size_t lost = fresh_of((size_t)8 * GRANULES_PER_CHUNK, 7);
  range_cache_give(lost, CLASS, &counters);
  cut_off_at(lost, PROT_NONE, purge_until_stopped, NULL);
  pid_t child = fork();
  if (child == 0) _exit(go_on_in_the_child(lost, used));
  require_child_succeeded(child);
}
