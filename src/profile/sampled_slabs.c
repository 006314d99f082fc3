#include "profile/sampled_slabs.h"

#include <string.h>

#include "pool/slab_pool.h"
#include "profile/profile.h"
#include "slab/slab.h"

enum { OPEN_SLABS = 4 };

RARE_DATA static ATOMIC(struct slab *) open_slabs[SLAB_CLASS_COUNT][OPEN_SLABS];
static ATOMIC(uint32_t)
    users; /* threads that may hold an address of a slab which they have no block of */
static THREAD_LOCAL uint8_t own_visits; /* this thread's, with those that a signal interrupted */

/* seq, both: a thread that releases a slab has closed it before it counts the users, and users are counted before they look for open
 * slabs; pairs with is_alone. */
static void enter(void) {
  own_visits++;
  keep_store_order();
  fetch_add_seq(&users, 1);
}
static void leave(void) {
  fetch_sub_seq(&users, 1);
  keep_store_order();
  own_visits--;
}
static bool is_alone(void) { return load_seq(&users) == 1; } /* seq: see enter */

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static void *take_from(struct slab *slab) {
  for (unsigned word = 0; word < slab->word_count; word++) {
    uint64_t bits = load_relaxed(&slab->remote[word]);
    for (; bits; bits &= bits - 1) {
      unsigned bit = lowest_bit(bits);
      /* seq: acquire would do: earlier accesses to the block; pairs with give_to. */
      if (fetch_and_seq(&slab->remote[word], ~(UINT64_C(1) << bit)) & UINT64_C(1) << bit)
        return (void *)(slab->base + ((size_t)word * 64 + bit) * slab->block_bytes);
    }
  }
  return NULL;
}

static bool give_to(struct slab *slab, unsigned index) {
  uint64_t bit = UINT64_C(1) << index % 64;
  /* seq: release would do: earlier accesses to the block; pairs with take_from and collect_all. */
  return !(fetch_or_seq(&slab->remote[index / 64], bit) & bit) ||
         slab_fail_double_free(slab, index / 64, bit);
}

static bool has_free(const struct slab *slab) {
  for (unsigned word = 0; word < slab->word_count; word++)
    if (load_relaxed(&slab->remote[word])) return true;
  return false;
}

/* ---- open slabs ------------------------------------------------------------------------------------------------- */

/* Puts the slab in an empty place or in that of a full slab. Without a place it is found again when one of its blocks is freed. */
static void open_slab(struct slab *slab) {
  ATOMIC(struct slab *) *places = open_slabs[slab->class], *place = NULL;
  struct slab *before = NULL;
  for (unsigned index = 0; index < OPEN_SLABS; index++) {
    struct slab *here = load_acquire(&places[index]); /* its record; pairs with the release below */
    if (here == slab) return;
    if (place || (here && has_free(here))) continue;
    place = &places[index];
    before = here;
  }
  /* release: the slab's record; pairs with take_from_open. */
  if (place) cas_strong_acq_rel(place, &before, slab);
}

static void close_slab(struct slab *slab) {
  ATOMIC(struct slab *) *places = open_slabs[slab->class];
  for (unsigned index = 0; index < OPEN_SLABS; index++) {
    struct slab *here = slab;
    /* seq: before the users are counted; pairs with enter. */
    cas_strong_seq(&places[index], &here, NULL);
  }
}

static void *take_from_open(unsigned class) {
  void *block = NULL;
  for (unsigned index = 0; index < OPEN_SLABS && !block; index++) {
    /* seq: after enter; and acquire: its record, pairs with open_slab. */
    struct slab *slab = load_seq(&open_slabs[class][index]);
    if (slab) block = take_from(slab);
  }
  return block;
}

static bool another_has_free(const struct slab *slab) {
  for (unsigned index = 0; index < OPEN_SLABS; index++) {
    /* seq: after enter, as above, so that no thread releases it meanwhile; and acquire: its record, pairs with open_slab. */
    const struct slab *here = load_seq(&open_slabs[slab->class][index]);
    if (here && here != slab && has_free(here)) return true;
  }
  return false;
}

/* ---- slabs ------------------------------------------------------------------------------------------------------ */

/* A new slab; all its blocks are free, in `remote`. */
static struct slab *make(unsigned class, struct counters *counters) {
  struct slab *slab = acquire_slab(class, POOL_ALL, counters);
  if (!slab) return NULL;
  slab_set_free(slab, 0);
  slab->handed_out = slab->capacity;
  for (unsigned word = 0; word < slab->word_count; word++) {
    slab->local[word] = 0;
    store_relaxed(&slab->remote[word], slab_word_bits(slab, word));
  }
  ASSERT(slab_is_valid(slab));
  slab_set_map_entries(slab, MAP_TAG_UNOWNED);
  return slab;
}

/* Takes all its blocks; false when some are not free. */
static bool collect_all(struct slab *slab, uint64_t *bits) {
  unsigned blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++) {
    /* seq: earlier accesses to the blocks; pairs with give_to. */
    bits[word] = exchange_seq(&slab->remote[word], 0);
    blocks += count_bits(bits[word]);
  }
  return blocks == slab->capacity;
}

/* No other thread has one of its blocks, or can find it. */
static void release(struct slab *slab, const uint64_t *bits, struct counters *counters) {
  memcpy(slab->local, bits, slab->word_count * sizeof *bits);
  slab_set_free(slab, slab->capacity);
  slab_set_map_entries(slab, MAP_TAG_NONE);
  release_slab(slab, 0, counters);
}

/* Slabs that could not be released while others were inside. The thread that sets `queued` to 1 may put a slab here or release it.
 * Pushed one by one, popped all at once. */
static ATOMIC(struct slab *) waiting;

static void let_wait(struct slab *slab) {
  struct slab *first = load_relaxed(&waiting);
  do store_relaxed(&slab->pending_next, first);
  while (!cas_weak_acq_rel(&waiting, &first,
                           slab)); /* release: the link; pairs with look_at_waiting */
}

static void try_release(struct slab *slab, struct counters *counters) {
  uint64_t bits[WIDE_WORDS];
  /* seq: acquire would do; of two threads that would release it one goes on; pairs with look_at_waiting. */
  if (exchange_seq(&slab->queued, 1) != 0) return;
  close_slab(slab);
  if (collect_all(slab, bits) && is_alone()) {
    store_relaxed(&slab->queued, 0);
    release(slab, bits, counters);
    return;
  }
  for (unsigned word = 0; word < slab->word_count; word++)
    if (bits[word]) fetch_or_seq(&slab->remote[word], bits[word]); /* seq: as in give_to */
  let_wait(slab);
}

static bool is_wholly_free(const struct slab *slab) {
  return slab_count_remote(slab) == slab->capacity;
}

/* Called when a block of the slab was freed, or when the slab has waited. */
static void settle(struct slab *slab, struct counters *counters) {
  if (is_wholly_free(slab) && (!profile_is_on() || another_has_free(slab)))
    try_release(slab, counters);
  else
    open_slab(slab);
}

/* Settles the slabs that wait; not while other threads are inside, when none could be released, unless it is needed. */
static void look_at_waiting(struct counters *counters, bool is_needed) {
  if (LIKELY(!load_relaxed(&waiting)) || (!is_needed && !is_alone())) return;
  struct slab *slab = exchange_acquire(&waiting, NULL); /* pairs with let_wait */
  while (slab) {
    struct slab *next = load_relaxed(&slab->pending_next);
    store_seq(&slab->queued, 0); /* seq: then it is looked at; pairs with try_release */
    settle(slab, counters);
    slab = next;
  }
}

/* ---- from outside ----------------------------------------------------------------------------------------------- */

void *sampled_slabs_take(unsigned class, struct counters *counters) {
  enter();
  look_at_waiting(counters, false);
  void *block = take_from_open(class);
  if (UNLIKELY(!block)) {
    look_at_waiting(counters, true);
    block = take_from_open(class);
  }
  struct slab *slab = block ? NULL : make(class, counters);
  if (slab) {
    block = take_from(slab);
    open_slab(slab);
  }
  leave();
  if (block) fetch_add_relaxed(&totals.sampled_live_bytes, class_bytes(class));
  return block;
}

bool sampled_slabs_give(void *block, struct counters *counters) {
  struct slab *slab = slab_of_block((uintptr_t)block);
  unsigned index = (unsigned)slab_index_of(slab, (uintptr_t)block, "free");
  if (UNLIKELY(index == NO_BLOCK)) return false;
  enter();
  bool is_given = give_to(slab, index);
  if (is_given) fetch_sub_relaxed(&totals.sampled_live_bytes, class_bytes(slab->class));
  if (is_given) settle(slab, counters);
  look_at_waiting(counters, false);
  leave();
  return is_given;
}

bool sampled_slabs_has(uintptr_t block) {
  const struct slab *slab = slab_of_block(block);
  unsigned index;
  return slab_has_block(slab, block, &index) &&
         !(load_relaxed(&slab->remote[index / 64]) & UINT64_C(1) << index % 64);
}

void sampled_slabs_release(struct counters *counters) {
  enter();
  look_at_waiting(counters, false);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    for (unsigned index = 0; index < OPEN_SLABS; index++) {
      /* seq: after enter; and acquire: its record, pairs with open_slab. */
      struct slab *slab = load_seq(&open_slabs[class][index]);
      if (slab && is_wholly_free(slab)) try_release(slab, counters);
    }
  leave();
}

/* A signal handler that interrupted its own thread here may fork; its child goes on with that call when the handler returns, and it is
 * unknown whether the call was counted yet. So one more user is assumed to be inside, and the child releases nothing. */
void sampled_slabs_after_fork(void) {
  enum { NEVER_ALONE = 1u << 30 };
  store_relaxed(&users, own_visits ? NEVER_ALONE : 0);
}
