/* src/heap/thread.c and src/cache: heaps that their threads leave and others take over, with
 * slabs that are freed into. */
#include "cache/caches.h"
#include "cache/class_figures.h"
#include "cache/parked.h"
#include "cache/refill.h"
#include "heap/fast_path.h"
#include "heap/free.h"
#include "heap/thread.h"
#include "slab/batch_free.h"
#include "slabs.h"

static struct heap *first_heap;             /* made by set_up, used by thread 0 */
static struct slab *slab;                   /* its own */
static void *blocks[2 + MODEL_THREADS_MAX]; /* two of set_up's, one of each thread */
static struct heap *used[MODEL_THREADS_MAX];

static bool refill(struct heap *heap, unsigned class) {
  heap_enter(heap);
  bool is_filled = batch_refill(heap, class);
  heap_leave(heap);
  return is_filled;
}

static void set_up_nothing(void) {
  options.route_p = false;
  options.helper_thread = 0;
  options.window_gib = 1;
}

static void set_up_heap(void) {
  set_up_nothing();
  MODEL_REQUIRE(heaps_ready());
  first_heap = heap_borrow();
  MODEL_REQUIRE(first_heap);
  MODEL_REQUIRE(refill(first_heap, CLASS_32K));
  slab = first_heap->owner.bins[CLASS_32K].current;
  store_relaxed(&purge_state, PURGE_ARMED);
}

static void *pop_block(struct heap *heap, unsigned class) {
  if (!magazine_count(&heap->magazines[class])) refill(heap, class);
  return *--heap->magazines[class].top;
}

/* Two blocks are live, of which another thread frees one; the magazine has none. */
static void set_up_live_blocks(void) {
  set_up_heap();
  blocks[0] = pop_block(first_heap, CLASS_32K);
  blocks[1] = pop_block(first_heap, CLASS_32K);
  MODEL_REQUIRE(slab_of_block((uintptr_t)blocks[1]) == slab);
}

/* The same, in a heap that waits for a thread. */
static void set_up_parked(void) {
  set_up_live_blocks();
  batch_free(&first_heap->owner, &blocks[0], 1, &strays[0]);
  caches_park(first_heap);
}

static uint64_t bit_of(const void *block) {
  return UINT64_C(1) << slab_index_of(slab, (uintptr_t)block, "look");
}

/* ---- what threads do ------------------------------------------------------------------------- */

static void leave(void) { caches_park(first_heap); }

static void free_without_heap(void) { batch_free(NULL, &blocks[0], 1, &strays[model_self()]); }

/* A new thread: takes a heap over, or makes one, and allocates. */
static void begin(void) {
  struct heap *heap = heap_borrow();
  MODEL_REQUIRE(heap);
  unsigned thread = (unsigned)model_self();
  used[thread] = heap;
  blocks[2 + thread] = pop_block(heap, CLASS_32K);
  MODEL_REQUIRE(blocks[2 + thread]);
  heap->exit_round = (uint8_t)thread; /* a write: two threads with one heap would race here */
}

static void only_begin(void) { used[model_self()] = heap_borrow(); }

/* As all who look for slabs: over all owners. */
static void walk(void) {
  for (const struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    MODEL_REQUIRE(owner->number != 0);
}

static bool is_registered(const struct owner *owner) {
  for (const struct owner *other = owners_first(); other; other = other->next_of_all)
    if (other == owner) return true;
  return false;
}

static void check_made(void) {
  MODEL_REQUIRE(used[0] != used[1] && used[0]->owner.tag != used[1]->owner.tag);
  MODEL_REQUIRE(is_registered(&used[0]->owner) && is_registered(&used[1]->owner));
}

static void begin_and_leave(void) {
  begin();
  caches_park(used[model_self()]);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* All owners' laws; each block of the slab is free once, or live. */
static uint64_t in_magazines(void) {
  uint64_t bits = 0;
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    const struct magazine *magazine = &heap_of_owner(owner)->magazines[CLASS_32K];
    for (void **slot = magazine_base(magazine); slot != magazine->top; slot++)
      if (slab_of_block((uintptr_t)*slot) == slab) {
        MODEL_REQUIRE(!(bits & bit_of(*slot)));
        bits |= bit_of(*slot);
      }
  }
  return bits;
}

static void check_heaps(void) {
  struct owner *owner = load_relaxed(&slab->owner);
  uint64_t live = bit_of(blocks[1]), free_bits;
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++) {
    if (!used[thread]) continue;
    if (slab_of_block((uintptr_t)blocks[2 + thread]) != slab) continue;
    MODEL_REQUIRE(!(live & bit_of(blocks[2 + thread])));
    live |= bit_of(blocks[2 + thread]);
  }
  for (struct owner *each = owners_first(); each; each = each->next_of_all) require_ready(each);
  MODEL_REQUIRE(owner && slab->is_listed == is_listed_with(slab, owner));
  free_bits = slab->local[0] | load_relaxed(&slab->remote[0]);
  MODEL_REQUIRE(!(slab->local[0] & load_relaxed(&slab->remote[0])));
  MODEL_REQUIRE(!(live & free_bits) && !(in_magazines() & (live | free_bits)));
  MODEL_REQUIRE((live | free_bits | in_magazines()) == low_bits(SLAB_BLOCKS));
  bool is_on_offer = load_relaxed(&owner->state) != OWNER_RUNNING;
  if (is_on_offer && free_bits) MODEL_REQUIRE(load_relaxed(&orphan_mask) >> CLASS_32K & 1);
  /* Blocks on their way arrive. */
  for (struct owner *each = owners_first(); each; each = each->next_of_all)
    pending_drain_class(each, CLASS_32K, UINT64_MAX);
  for (struct owner *each = owners_first(); each; each = each->next_of_all)
    pending_drain_class(each, CLASS_32K, UINT64_MAX);
  if (owner->bins[CLASS_32K].current == slab) slab_collect(slab, owner);
  MODEL_REQUIRE(load_relaxed(&slab->remote[0]) == 0 && load_relaxed(&slab->queued) == 0);
}

/* ---- the own thread wakes a dormant heap while another adopts from it ------------------------ */

enum { CLASS_1K = TINY_CLASS_COUNT - 1 };
static void *tiny_block;

static void set_up_dormant(void) {
  set_up_heap();
  first_heap = heap_make();
  tiny_block = NULL;
  struct owner *owner = &first_heap->owner;
  slab = acquire_slab(CLASS_1K, POOL_ALL, &strays[0]);
  slab_own(slab, owner);
  MODEL_REQUIRE(slab_take(slab, owner, &tiny_block, 1) == 1);
  slab_list(slab, owner);
  struct purge round = PURGE_EVERYTHING;
  for (struct owner *each = owners_first(); each; each = each->next_of_all)
    owner_sweep(each, os_now_ns(), &round);
}

static void refill_tiny(void) { refill(first_heap, CLASS_1K); }

static void adopt_tiny(void) {
  latch_take(&two);
  adopt_from_ended(&two, CLASS_1K);
  latch_give(&two);
}

/* ---- a thread's whole life, from its first malloc to its last destructor --------------------- */

static void end_this_thread(void) {
  struct heap *heap = heap_of_thread;
  for (unsigned round = 0; round < OS_THREAD_EXIT_ROUNDS; round++) model_os.end_of_thread(heap);
}

/* Thread 0 has a heap, with a live block and some in its magazine. */
static void set_up_life(void) {
  set_up_heap();
  blocks[0] = pop_block(first_heap, CLASS_32K);
}

static void end_the_first(void) {
  heap_of_thread = first_heap;
  end_this_thread();
}

/* Allocates, frees the other thread's block and its own. */
static void live(void) {
  MODEL_REQUIRE(heap_of_this_thread()); /* its first calls would do without */
  unsigned class = class_of_size(STEPPED_MAX_BYTES);
  int *block = heap_malloc_slow(STEPPED_MAX_BYTES, class * PLACES_A_CLASS, heap_of_thread);
  MODEL_REQUIRE(block && block != blocks[0]);
  *block = 2; /* no other thread has it */
  heap_free_slow(blocks[0]);
  heap_free_slow(block);
  end_this_thread();
}

/* Everything is free. */
static void check_life(void) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    MODEL_REQUIRE(load_relaxed(&owner->state) == OWNER_PARKED);
    require_ready(owner);
    pending_drain_class(owner, CLASS_32K, UINT64_MAX);
  }
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    pending_drain_class(owner, CLASS_32K, UINT64_MAX);
    if (owner->bins[CLASS_32K].current) slab_collect(owner->bins[CLASS_32K].current, owner);
    MODEL_REQUIRE(magazine_count(&heap_of_owner(owner)->magazines[CLASS_32K]) == 0);
    MODEL_REQUIRE(load_relaxed(&owner->bytes_out) == 0);
  }
}

/* In order: with older values, too, there are more schedules than can be tried.  What a weak latch
 * breaks "heap-leave" finds. */
static const struct model_mutant life_mutants[] = {
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}}};

/* ---- new threads' first blocks: the heap that they share ------------------------------------- */

/* Takes a block and gives it home; takes another. */
static void use_starter(void) {
  void *block = starter_take(CLASS_1K, 1000);
  MODEL_REQUIRE(block);
  *(int *)block = model_self(); /* no other thread has it */
  blocks[model_self()] = block;
  if (model_self() == 0) {
    batch_free(NULL, &block, 1, &strays[0]);
    blocks[0] = NULL;
  }
}

static void check_starter(void) {
  struct slab *shared = slab_of_block((uintptr_t)blocks[1]);
  unsigned starters = 0; /* one that was made in vain is parked */
  for (struct owner *each = owners_first(); each; each = each->next_of_all) {
    require_ready(each);
    starters += each != &first_heap->owner && load_relaxed(&each->state) == OWNER_RUNNING;
  }
  MODEL_REQUIRE(starters == 1 && load_relaxed(&shared->owner) != &first_heap->owner);
  MODEL_REQUIRE(shared->free_local + slab_count_remote(shared) + 1 == shared->capacity);
}

static const struct model_mutant starter_mutants[] = {
    {"made in two steps", {{"make_starter", "cas", "starter", MODEL_SPLIT, 0}}},
    {"found without acquire", {{"starter_if_any", "load", "starter", MODEL_WEAKEN, 0}}},
    {"the latch in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}}};

/* ---- the first calls of a process ------------------------------------------------------------ */

/* Sees what another thread may have set up. */
static void first_call(void) {
  MODEL_REQUIRE(heaps_ready());
  MODEL_REQUIRE(window.chunk_limit != 0 && model_os.end_of_thread);
}

static const struct model_mutant start_mutants[] = {
    {"ready without release", {{"start_library", "store", "stage", MODEL_WEAKEN, 0}}},
    {"started in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}}};

static const struct model_mutant mutants[] = {
    {"the list of heaps without a lock", {{"word_try", "cas", "word", MODEL_NOTHING, 0}}},
    {"the lock without acquire", {{"word_try", "cas", "word", MODEL_WEAKEN, 0}}},
    {"the latch without release", {{"latch_give", "store", "latch", MODEL_WEAKEN, 0}}},
    {"not on offer", {{"orphan_mask_add", "or", "orphan_mask", MODEL_NOTHING, 0}}}};

static const struct model_mutant recycling_mutants[] = {
    {"the list of heaps without a lock", {{"word_try", "cas", "word", MODEL_NOTHING, 0}}}};

static const struct model_mutant made_mutants[] = {
    {"registered without release", {{"owner_register", "cas", "all_owners", MODEL_WEAKEN, 0}}},
    {"registered in two steps", {{"owner_register", "cas", "all_owners", MODEL_SPLIT, 0}}}};

SCENARIO("heap-leave", .set_up = set_up_live_blocks, .threads = {leave, free_without_heap, begin},
         .check = check_heaps, .always = no_spinning, MUTANTS(mutants));
SCENARIO("heap-begin", .set_up = set_up_parked, .threads = {begin_and_leave, begin},
         .check = check_heaps, .always = no_spinning, MUTANTS(recycling_mutants));
SCENARIO("heap-made", .set_up = set_up_live_blocks, .threads = {only_begin, only_begin, walk},
         .check = check_made, .always = no_spinning, MUTANTS(made_mutants));
SCENARIO("heap-dormant", .set_up = set_up_dormant, .threads = {refill_tiny, adopt_tiny},
         .always = no_spinning);
SCENARIO("heap-life", .set_up = set_up_life, .threads = {end_the_first, live}, .check = check_life,
         .in_order = true, .always = no_spinning, MUTANTS(life_mutants));
SCENARIO("heap-starter", .set_up = set_up_heap, .threads = {use_starter, use_starter},
         .check = check_starter, .in_order = true, .always = no_spinning, MUTANTS(starter_mutants));
SCENARIO("heap-start", .set_up = set_up_nothing, .threads = {first_call, first_call},
         .always = no_spinning, MUTANTS(start_mutants));
/* Without its first mutant, which needs old values. */
SCENARIO("heap-start-three", .set_up = set_up_nothing,
         .threads = {first_call, first_call, first_call}, .in_order = true, .always = no_spinning,
         .mutants = start_mutants + 1, .mutant_count = 1);
