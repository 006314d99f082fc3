/* slab_pool.c: see slab_pool.h.
 *
 *   acquire_slab
 *     take_empty                         stage 1
 *     take_unused ── claim_run           stage 2, over the directory of open SuperSlabs
 *     take_from_system ── make_superslab   stage 3
 *   release_slab ── return_slots ── keep_superslab
 *   slab_pool_purge ── age_empty_slabs, purge_unused_slots, age_kept_superslabs */
#include "pool/slab_pool.h"

#include <string.h>

#include "base/tagged_stack.h"
#include "config/limits.h"
#include "config/options.h"
#include "map/commit.h"
#include "map/huge.h"
#include "map/metadata.h"
#include "os/os.h"

ATOMIC(uint32_t) purge_state;
ATOMIC(uint32_t) purge_helper_waits;
ATOMIC(bool) purge_has_helper;

/* What one class keeps as EMPTY slabs, ready without any set-up; more go back to all classes. */
#define EMPTY_KEEP_BYTES ((size_t)256 << 10)

enum { SLOT_COUNT_KINDS = 3, DIRECTORY_WORD_CHUNKS = 64 }; /* slabs of 1, 2 and 4 slots */

/* Of the directory below: 1 TiB of the window each, 256 TiB together, which is more than a process has addresses. */
enum { PIECE_WORDS = 1 << 13, DIRECTORY_PIECES = 1 << 8 };
typedef ATOMIC(uint64_t) directory_word;
struct pieces {
  ATOMIC(directory_word *) words[DIRECTORY_PIECES]; /* NULL where no SuperSlab ever was */
};

/* Two to a cache line: all of them are read at the start of every process, and share a page with more. */
enum { EMPTY_STACK_ALIGNMENT = CACHE_LINE_BYTES / 2 };
struct empty_stack {
  _Alignas(EMPTY_STACK_ALIGNMENT) struct tagged_stack stack;
  ATOMIC(uint32_t) slab_count; /* about as many as are in it: raised before, lowered after */
};

static struct {
  struct empty_stack empty[SLAB_CLASS_COUNT];

  /* Directory: bit per chunk, set while the SuperSlab there has UNUSED slots.  Its first word is here: a small
   * process needs no other. */
  CACHE_ALIGNED ATOMIC(uint64_t) first_open;
  ATOMIC(uint64_t) *other_open; /* the other words of the first piece, and room for the first */
  ATOMIC(struct pieces *) more; /* NULL while all SuperSlabs are in the window's first TiB */
  /* No open SuperSlab below this directory word has room for a slab of 1 << kind slots (a hint). */
  ATOMIC(size_t) first_open_word[SLOT_COUNT_KINDS];

  struct tagged_stack kept;     /* the LRU: wholly free SuperSlabs with pages, youngest on top */
  struct tagged_stack clean;    /* wholly free ones without pages, or without addresses */
  struct tagged_stack occupied; /* of those, in whose addresses others have mapped something */
  ATOMIC(uint32_t) occupied_tried_ms;
  ATOMIC(struct superslab *) spare_records; /* without a chunk: the system refused it */
} pool;

/* ---- items of the stacks ----------------------------------------------------------------------- */

static uint32_t slab_number(const struct slab *slab) { return (uint32_t)granule_of(slab->base); }
static ATOMIC(uint32_t) *slab_link(uint32_t number) { return &slab_of_granule(number)->link; }
static ATOMIC(uint32_t) *superslab_link(uint32_t number) {
  return &superslab_of_chunk(number)->link;
}

/* ---- the directory of open SuperSlabs ------------------------------------------------------------ */

static unsigned slot_count_kind(unsigned slot_count) { return lowest_bit(slot_count); }

/* NULL where no SuperSlab ever was. */
RESIDENT static ATOMIC(uint64_t) *open_word(size_t index) {
  if (!index) return &pool.first_open;
  if (LIKELY(index < PIECE_WORDS)) return &pool.other_open[index];
  struct pieces *more = load_acquire(&pool.more); /* this and the next pair with make_word */
  ATOMIC(uint64_t) *words = more ? load_acquire(&more->words[index / PIECE_WORDS]) : NULL;
  return words ? &words[index % PIECE_WORDS] : NULL;
}

/* The next word after this one that may have any. */
static size_t next_word(size_t index) {
  return open_word(index) ? index + 1 : (index / PIECE_WORDS + 1) * PIECE_WORDS;
}

/* The SuperSlabs of a word. */
static uint64_t open_in_word(size_t index) {
  const ATOMIC(uint64_t) *word = open_word(index);
  return word ? load_acquire(word) : 0; /* pairs with directory_open */
}

/* The loser of a race leaves addresses unused: nobody waits for anybody. */
static NOINLINE bool make_word(size_t index) {
  struct pieces *no_table = NULL, *table = load_acquire(&pool.more);
  if (!table && !(table = metadata_allocate(sizeof *table))) return false;
  /* release: zeroed before; here and below. */
  if (!cas_strong_acq_rel(&pool.more, &no_table, table)) table = no_table;
  ATOMIC(uint64_t) *no_words = NULL, *words = metadata_allocate(PIECE_WORDS * sizeof *words);
  if (words) cas_strong_acq_rel(&table->words[index / PIECE_WORDS], &no_words, words);
  return words != NULL;
}

static bool has_word(size_t index) { return LIKELY(open_word(index) != NULL) || make_word(index); }

RESIDENT static void directory_close(const struct superslab *superslab) {
  uint64_t bit = UINT64_C(1) << superslab->chunk % DIRECTORY_WORD_CHUNKS;
  ATOMIC(uint64_t) *word = open_word(superslab->chunk / DIRECTORY_WORD_CHUNKS);
  /* seq: the clearing before the second look at `unused`; pairs with return_slots, which sets bits
   * of `unused` before it opens.  One of the two sees the other. */
  fetch_and_seq(word, ~bit);
  if (load_seq(&superslab->unused)) fetch_or_seq(word, bit);
}

static void directory_open(const struct superslab *superslab) {
  size_t index = superslab->chunk / DIRECTORY_WORD_CHUNKS;
  uint64_t bit = UINT64_C(1) << superslab->chunk % DIRECTORY_WORD_CHUNKS;
  ATOMIC(uint64_t) *word = open_word(index);
  if (!(load_seq(word) & bit)) fetch_or_seq(word, bit);
  for (unsigned kind = 0; kind < SLOT_COUNT_KINDS; kind++) {
    size_t first = load_relaxed(&pool.first_open_word[kind]); /* relaxed: only a hint */
    while (first > index && !cas_weak_acq_rel(&pool.first_open_word[kind], &first, index)) {
    }
  }
}

static size_t directory_words(void) {
  return load_relaxed(&window.frontier_chunk) / DIRECTORY_WORD_CHUNKS + 1;
}

/* ---- slots ---------------------------------------------------------------------------------------- */

/* Bits at which a run of `slot_count` set bits begins. */
static uint32_t run_starts(uint32_t bits, unsigned slot_count) {
  if (slot_count >= 2) bits &= bits >> 1;
  if (slot_count >= 4) bits &= bits >> 2;
  return bits;
}

static uint32_t run_mask(unsigned first, unsigned slot_count) {
  return (uint32_t)low_bits(slot_count) << first;
}

/* Slabs of one slot grow from the bottom of a SuperSlab, longer ones from its top, so that the ones
 * do not cut the others' runs. */
static unsigned choose_run(uint32_t starts, unsigned slot_count) {
  return slot_count == 1 ? lowest_bit(starts) : highest_bit(starts);
}

/* Takes a run of UNUSED slots of this SuperSlab; the first slot, or -1.  With `only_dirty` just ones
 * whose pages may still be resident. */
static int claim_run(struct superslab *superslab, unsigned slot_count, bool only_dirty,
                     struct counters *counters) {
  uint32_t unused = load_relaxed(&superslab->unused);
  for (;;) {
    uint32_t wanted = only_dirty ? unused & load_relaxed(&superslab->dirty) : unused;
    uint32_t starts = run_starts(wanted, slot_count);
    if (!starts) return -1;
    unsigned first = choose_run(starts, slot_count);
    uint32_t mask = run_mask(first, slot_count);
    /* acquire: what return_slots wrote into the records before it set the bits. */
    if (cas_weak_acq_rel(&superslab->unused, &unused, unused & ~mask)) {
      if (!(unused & ~mask)) directory_close(superslab);
      return (int)first;
    }
    count(counters, COUNT_cas_retries);
  }
}

static void fill_local(struct slab *slab) {
  unsigned last = slab->word_count - 1u;
  for (unsigned word = 0; word < last; word++) slab->local[word] = ~UINT64_C(0);
  slab->local[last] = low_bits(slab->capacity - last * 64);
  slab->free_local = slab->capacity;
  slab->first_word = 0;
  slab->handed_out = 0;
  ASSERT(!slab->has_free_pages && !slab->waiting_pages && !slab->given_pages);
}

/* Claimed slots whose pages were given back once are used again. */
static void note_refaults(struct superslab *superslab, uint32_t mask) {
  uint32_t again = load_relaxed(&superslab->purged) & mask;
  if (LIKELY(!again)) return;
  fetch_and_relaxed(&superslab->purged, ~again);
  fetch_add_relaxed(&totals.refaulted_bytes, count_bits(again) * GRANULE_BYTES);
}

static size_t slab_bytes(unsigned class) { return slots_of_class(class) * GRANULE_BYTES; }

/* HAKMEM_HARDEN=1 clears of a large block its ends alone when it is freed; another class's blocks have theirs elsewhere. */
COLD static void wipe(uintptr_t base, unsigned slot_count) {
  memset((void *)base, 0, slot_count * GRANULE_BYTES); /* NOLINT: memory comes from addresses */
}

/* Makes claimed slots a slab of the class, for which `taken_bytes` have been taken (map/commit.h). */
RESIDENT static struct slab *make_slab(struct superslab *superslab, unsigned first_slot,
                                       unsigned class, size_t taken_bytes) {
  struct slab *slab = &superslab->slabs[first_slot];
  const struct slab_shape *shape = &slab_shapes[class];
  uint32_t mask = run_mask(first_slot, shape->slot_count);
  /* The pages of dirty ones are counted already. */
  uint32_t fresh = mask & ~load_relaxed(&superslab->dirty);
  commit_settle(taken_bytes, count_bits(fresh) * GRANULE_BYTES);
  slab->base = chunk_address(superslab->chunk) + (size_t)first_slot * GRANULE_BYTES;
  if (UNLIKELY(options.harden == 1) && fresh != mask) wipe(slab->base, shape->slot_count);
  slab->block_bytes = shape->block_bytes;
  slab->capacity = shape->capacity;
  slab->word_count = shape->word_count;
  slab->slot_count = shape->slot_count;
  slab->class = (uint8_t) class;
  slab->local = slab_local_bits(superslab, first_slot, shape);
  slab->remote = slab_remote_bits(superslab, first_slot, shape);
  for (unsigned later = 1; later < shape->slot_count; later++) slab[later].base = slab->base;
  note_refaults(superslab, mask);
  fill_local(slab);
  /* release: the class and the rest before the state (P3). */
  store_release(&slab->state, SLOT_ACTIVE);
  return slab;
}

/* ---- SuperSlabs ------------------------------------------------------------------------------------ */

/* The slots of a SuperSlab that may ever be used. */
INLINE uint32_t usable_slots(void) { return options.harden ? LOWER_SLOTS : ALL_SLOTS; }

/* Hardened mode: nobody touches the others.  Where the system refuses they are open, and as unused. */
COLD static void close_others(const struct superslab *superslab) {
  os_close_pages((void *)(chunk_address(superslab->chunk) + CHUNK_BYTES / 2), CHUNK_BYTES / 2);
}

static enum os_map_result map_again(struct superslab *superslab) {
  if (superslab->is_mapped) return OS_MAPPED;
  enum os_map_result result = os_map_at((void *)chunk_address(superslab->chunk), CHUNK_BYTES);
  if (result != OS_MAPPED) return result;
  if (!load_relaxed(&superslab->may_be_huge))
    huge_keep_out(chunk_address(superslab->chunk), CHUNK_BYTES);
  if (UNLIKELY(options.harden)) close_others(superslab);
  superslab->is_mapped = true;
  fetch_add_relaxed(&totals.superslabs_mapped, 1);
  return OS_MAPPED;
}

static void keep_record(struct superslab *record) {
  record->next_spare = load_relaxed(&pool.spare_records);
  /* release: the link; pairs with the exchange in take_record. */
  while (!cas_weak_acq_rel(&pool.spare_records, &record->next_spare, record)) {
  }
}

/* Taking all spare records at once, and giving the others back, needs no tag. */
static struct superslab *take_record(void) {
  struct superslab *record = exchange_acquire(&pool.spare_records, NULL);
  if (!record) return metadata_allocate(sizeof *record);
  store_relaxed(&record->unused, 0);
  keep_store_order(); /* what is written before it is read costs one page fault, not two */
  for (struct superslab *rest = record->next_spare, *next; rest; rest = next) {
    next = rest->next_spare;
    keep_record(rest);
  }
  return record;
}

/* In hardened mode it has bits for what is live. */
static bool has_bits(struct superslab *record) {
  size_t bytes = LIVE_WORDS * sizeof *record->live;
  if (options.harden && !record->live) record->live = metadata_allocate(bytes);
  return !options.harden || record->live;
}

static size_t grow_by_chunk(void) {
  size_t chunk = window_grow(1, 0);
  if (chunk == NO_CHUNK || has_word(chunk / DIRECTORY_WORD_CHUNKS)) return chunk;
  window_give_back(chunk, 1, 0);
  return NO_CHUNK;
}

/* A process that has so many and needs one more will use it up: then a huge page is less work, and no waste. */
enum { SUPERSLABS_BEFORE_HUGE = 32 };

static void allow_huge(struct superslab *superslab) {
  bool will_be_full = load_relaxed(&totals.superslabs_mapped) >= SUPERSLABS_BEFORE_HUGE;
  if (options.harden || (!options.thp && !will_be_full)) /* hardened: half of it is closed */
    huge_keep_out(chunk_address(superslab->chunk), CHUNK_BYTES);
  else
    store_relaxed(&superslab->may_be_huge, huge_let_in(superslab->chunk, 1));
}

/* The first touch may make all pages resident that this SuperSlab has not: so they count, and what is not used goes
 * back by age.  Who asked for huge pages (HAKMEM_THP) wants to keep them. */
static NOINLINE void count_all_slots(struct superslab *superslab) {
  uint32_t more = ~load_relaxed(&superslab->dirty), now_ms = (uint32_t)os_now_coarse_ms();
  if (!commit_take(count_bits(more) * GRANULE_BYTES)) {
    superslab_refuse_huge(superslab);
    return;
  }
  for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB; slot++)
    store_relaxed(&superslab->slabs[slot].stamp_ms, now_ms);
  store_relaxed(&superslab->dirty, ALL_SLOTS); /* ordered by return_slots */
  purge_want();
}

static void count_huge(struct superslab *superslab) {
  if (UNLIKELY(load_relaxed(&superslab->may_be_huge)) && !options.thp) count_all_slots(superslab);
}

static struct superslab *make_superslab(void) {
  struct superslab *superslab = take_record();
  if (!superslab) return NULL;
  if (!has_bits(superslab)) {
    keep_record(superslab);
    return NULL;
  }
  size_t chunk = grow_by_chunk();
  if (chunk == NO_CHUNK) { /* programs may ask again and again */
    keep_record(superslab);
    return NULL;
  }
  superslab->chunk = chunk;
  superslab->is_mapped = true;
  if (UNLIKELY(options.harden)) close_others(superslab);
  chunk_publish(chunk, superslab);
  fetch_add_relaxed(&totals.superslabs, 1);
  fetch_add_relaxed(&totals.superslabs_mapped, 1);
  allow_huge(superslab);
  count_huge(superslab);
  return superslab;
}

/* Those that others lay in may be free again: they are tried once more, now and then. */
static void forgive_occupied(void) {
  if (LIKELY(tagged_stack_is_empty(&pool.occupied))) return;
  uint32_t now_ms = (uint32_t)os_now_coarse_ms(), tried_ms = load_relaxed(&pool.occupied_tried_ms);
  if (now_ms - tried_ms < OCCUPIED_RETRY_MS) return;
  /* No order is needed: one thread is enough. */
  if (!cas_strong_acq_rel(&pool.occupied_tried_ms, &tried_ms, now_ms)) return;
  uint32_t youngest = tagged_stack_pop_all(&pool.occupied);
  if (youngest == NO_ITEM) return;
  uint32_t oldest = tagged_chain_reverse(youngest, superslab_link);
  tagged_stack_push_chain(&pool.clean, superslab_link, oldest, youngest);
}

/* Occupied ones that one call may meet: then it takes a new one, and the next call goes on. */
enum { OCCUPIED_TRIES = 16 };

/* One without pages.  NULL when there is none, or, with *is_refused, when the system does not map it. */
static NOINLINE struct superslab *take_clean(bool *is_refused) {
  forgive_occupied();
  for (unsigned tries = 0; tries < OCCUPIED_TRIES; tries++) {
    uint32_t number = tagged_stack_pop(&pool.clean, superslab_link);
    if (number == NO_ITEM) return NULL;
    struct superslab *superslab = superslab_of_chunk(number);
    enum os_map_result result = map_again(superslab);
    if (result == OS_MAPPED) {
      count_huge(superslab);
      return superslab;
    }
    *is_refused = result == OS_NO_MEMORY;
    tagged_stack_push(*is_refused ? &pool.clean : &pool.occupied, superslab_link, number);
    if (*is_refused) return NULL;
  }
  return NULL;
}

/* Stage 3: a SuperSlab that is wholly the caller's (unused == 0), or NULL: of those that have pages … */
static struct superslab *take_kept(struct counters *counters) {
  uint32_t number = tagged_stack_pop(&pool.kept, superslab_link);
  if (number == NO_ITEM) return NULL;
  fetch_sub_relaxed(&totals.superslabs_kept, 1);
  count(counters, COUNT_acquire_lru);
  return superslab_of_chunk(number);
}

/* … and of those that have none. */
RESIDENT static struct superslab *take_from_system(struct counters *counters) {
  bool is_refused = false;
  struct superslab *superslab = NULL;
  if (!tagged_stack_is_empty(&pool.clean) || !tagged_stack_is_empty(&pool.occupied))
    superslab = take_clean(&is_refused);
  if (superslab) {
    count(counters, COUNT_acquire_lru);
    return superslab;
  }
  if (!is_refused) superslab = make_superslab();
  if (superslab) count(counters, COUNT_acquire_os);
  return superslab;
}

/* A SuperSlab whose slots are all UNUSED and claimed by the caller joins the LRU. */
static void keep_superslab(struct superslab *superslab, uint32_t now_ms) {
  superslab->stamp_ms = now_ms;
  fetch_add_relaxed(&totals.superslabs_kept, 1);
  tagged_stack_push(&pool.kept, superslab_link, (uint32_t)superslab->chunk);
  purge_want();
}

/* Lets everybody take these slots; a SuperSlab that thereby is wholly free joins the LRU. */
RESIDENT static void return_slots(struct superslab *superslab, uint32_t mask, uint32_t now_ms) {
  /* seq: records and `dirty` before the bits (pairs with claim_run); the bits before the directory
   * is opened (pairs with directory_close). */
  uint32_t unused = fetch_or_seq(&superslab->unused, mask) | mask;
  while (unused == usable_slots()) {
    if (cas_weak_acq_rel(&superslab->unused, &unused, 0)) {
      directory_close(superslab);
      keep_superslab(superslab, now_ms);
      return;
    }
  }
  directory_open(superslab);
}

RESIDENT static void empty_to_unused(struct slab *slab, uint32_t now_ms) {
  size_t granule = granule_of(slab->base);
  struct superslab *superslab = superslab_of_chunk(granule / GRANULES_PER_CHUNK);
  uint32_t mask = run_mask((unsigned)(granule % GRANULES_PER_CHUNK), slab->slot_count);
  for (unsigned later = 1; later < slab->slot_count; later++)
    store_relaxed(&slab[later].stamp_ms, load_relaxed(&slab->stamp_ms));
  store_relaxed(&slab->state, SLOT_UNUSED);
  fetch_or_relaxed(&superslab->dirty, mask); /* ordered by return_slots */
  return_slots(superslab, mask, now_ms);
}

/* ---- acquire ---------------------------------------------------------------------------------------- */

RESIDENT static struct slab *pop_empty(unsigned class) {
  struct empty_stack *empty = &pool.empty[class];
  uint32_t number = tagged_stack_pop(&empty->stack, slab_link);
  if (number == NO_ITEM) return NULL;
  fetch_sub_relaxed(&empty->slab_count, 1);
  return slab_of_granule(number);
}

static struct slab *take_empty(unsigned class) {
  struct slab *slab = pop_empty(class);
  if (!slab) return NULL;
  ASSERT(load_relaxed(&slab->state) == SLOT_EMPTY && slab->class == class);
  store_release(&slab->state, SLOT_ACTIVE);
  return slab;
}

/* An EMPTY slab of another class, at least as long, becomes slots for all.  It ages on where it was. */
static bool open_an_empty(unsigned class) {
  for (unsigned other = 0; other < SLAB_CLASS_COUNT; other++) {
    bool may_have = load_relaxed(&pool.empty[other].slab_count) &&
                    slots_of_class(other) >= slots_of_class(class);
    struct slab *slab = may_have ? pop_empty(other) : NULL;
    if (!slab) continue;
    empty_to_unused(slab, load_relaxed(&slab->stamp_ms));
    return true;
  }
  return false;
}

/* With nothing taken only slots whose pages may be resident. */
static struct slab *take_unused_in_word(size_t index, unsigned class, size_t taken_bytes,
                                        struct counters *counters) {
  for (uint64_t open = open_in_word(index); open; open &= open - 1) {
    struct superslab *superslab =
        superslab_of_chunk(index * DIRECTORY_WORD_CHUNKS + lowest_bit(open));
    int first = claim_run(superslab, slots_of_class(class), !taken_bytes, counters);
    if (first >= 0) return make_slab(superslab, (unsigned)first, class, taken_bytes);
  }
  return NULL;
}

/* Lowest address first keeps the heap dense.  Slots with resident pages come before clean ones:
 * reuse before fresh memory. */
RESIDENT static struct slab *take_unused(unsigned class, size_t taken_bytes,
                                         struct counters *counters) {
  ATOMIC(size_t) *hint = &pool.first_open_word[slot_count_kind(slots_of_class(class))];
  size_t begin = load_relaxed(hint), end = directory_words();
  for (size_t index = begin; index < end; index = next_word(index)) {
    struct slab *slab = take_unused_in_word(index, class, taken_bytes, counters);
    if (slab) return slab;
  }
  /* Nothing anywhere: the next search may begin at the end, unless somebody opened one since (a hint). */
  if (taken_bytes) cas_strong_acq_rel(hint, &begin, end - 1);
  return NULL;
}

/* The first slab of a SuperSlab that is the caller's. */
RESIDENT static struct slab *open_superslab(struct superslab *superslab, unsigned class,
                                            size_t taken_bytes) {
  unsigned slot_count = slots_of_class(class);
  unsigned first = choose_run(run_starts(usable_slots(), slot_count), slot_count);
  struct slab *slab = make_slab(superslab, first, class, taken_bytes);
  /* Never the whole SuperSlab, so this opens it. */
  return_slots(superslab, usable_slots() & ~run_mask(first, slot_count), 0);
  return slab;
}

RESIDENT struct slab *acquire_touched_slab(unsigned class, struct counters *counters) {
  struct slab *slab = take_empty(class);
  if (slab) {
    count(counters, COUNT_acquire_empty);
    return slab;
  }
  slab = take_unused(class, 0, counters);
  if (!slab && open_an_empty(class)) slab = take_unused(class, 0, counters);
  if (slab) count(counters, COUNT_acquire_unused);
  return slab;
}

RESIDENT /* Slots that may have no pages yet. */
    RESIDENT struct slab *
    acquire_untouched_slab(unsigned class, struct counters *counters) {
  size_t bytes = slab_bytes(class);
  if (!commit_take(bytes)) return NULL;
  struct slab *slab = take_unused(class, bytes, counters);
  if (slab) {
    count(counters, COUNT_acquire_unused);
    return slab;
  }
  struct superslab *superslab = take_kept(counters);
  if (superslab) return open_superslab(superslab, class, bytes);
  commit_give(bytes);
  return NULL;
}

RESIDENT struct slab *acquire_slab_from_system(unsigned class, struct counters *counters) {
  size_t bytes = slab_bytes(class);
  if (!commit_take(bytes)) return NULL;
  struct superslab *superslab = take_from_system(counters);
  if (superslab) return open_superslab(superslab, class, bytes);
  commit_give(bytes);
  return NULL;
}

struct slab *acquire_slab(unsigned class, struct counters *counters) {
  struct slab *slab = acquire_touched_slab(class, counters);
  if (!slab) slab = acquire_untouched_slab(class, counters);
  return slab ? slab : acquire_slab_from_system(class, counters);
}

/* ---- release ---------------------------------------------------------------------------------------- */

static void check_all_free(const struct slab *slab) {
#if HAK_DEBUG
  unsigned free_blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++) {
    free_blocks += count_bits(slab->local[word]);
    ASSERT(load_relaxed(&slab->remote[word]) == 0);
  }
  ASSERT(free_blocks == slab->capacity && slab->free_local == slab->capacity);
#endif
  (void)slab;
}

RESIDENT void release_slab(struct slab *slab, uint32_t age_ms, struct counters *counters) {
  ASSERT(load_relaxed(&slab->owner) == NULL && !slab->is_listed);
  check_all_free(slab);
  count(counters, COUNT_released_slabs);
  slab->first_word = 0;
  uint32_t stamp_ms = (uint32_t)os_now_coarse_ms() - age_ms;
  store_relaxed(&slab->stamp_ms, stamp_ms);
  struct empty_stack *empty = &pool.empty[slab->class];
  uint32_t keep = (uint32_t)(EMPTY_KEEP_BYTES / (slab->slot_count * GRANULE_BYTES));
  if (load_relaxed(&empty->slab_count) >= keep) {
    empty_to_unused(slab, stamp_ms);
  } else {
    store_relaxed(&slab->state, SLOT_EMPTY);
    fetch_add_relaxed(&empty->slab_count, 1);
    count_add(counters, COUNT_cas_retries,
              tagged_stack_push(&empty->stack, slab_link, slab_number(slab)));
  }
  purge_want(); /* last: a round that begins from here on finds the slab */
}

/* ---- purge by age ------------------------------------------------------------------------------------ */

/* EMPTY slabs that their class did not want back become UNUSED: any class may have them. */
static void age_empty_slabs(struct purge *purge, unsigned class) {
  struct empty_stack *empty = &pool.empty[class];
  /* Oldest first, so that the youngest ends on top again. */
  uint32_t number = tagged_chain_reverse(tagged_stack_pop_all(&empty->stack), slab_link);
  while (number != NO_ITEM) {
    struct slab *slab = slab_of_granule(number);
    uint32_t next = load_relaxed(&slab->link);
    if (purge_is_due(purge, load_relaxed(&slab->stamp_ms))) {
      fetch_sub_relaxed(&empty->slab_count, 1);
      empty_to_unused(slab, load_relaxed(&slab->stamp_ms)); /* it ages on where it was */
    } else {
      tagged_stack_push(&empty->stack, slab_link, number);
    }
    number = next;
  }
}

static uint32_t due_slots(struct purge *purge, const struct superslab *superslab,
                          uint32_t candidates) {
  uint32_t due = 0;
  for (; candidates; candidates &= candidates - 1) {
    unsigned slot = lowest_bit(candidates);
    if (purge_is_due(purge, load_relaxed(&superslab->slabs[slot].stamp_ms)))
      due |= UINT32_C(1) << slot;
  }
  return due;
}

/* Gives back the pages of slots that the caller holds, neighbours in one call. */
LONG_LIVED static void purge_held_slots(struct purge *purge, struct superslab *superslab,
                                        uint32_t held) {
  uint32_t rest = held;
  while (rest) {
    unsigned first = lowest_bit(rest);
    unsigned length = lowest_bit(~((uint64_t)rest >> first));
    uint32_t mask = run_mask(first, length);
    size_t bytes = (size_t)length * GRANULE_BYTES;
    if (mask != ALL_SLOTS) superslab_refuse_huge(superslab);
    purge_note_call(purge);
    if (os_purge((void *)(chunk_address(superslab->chunk) + first * GRANULE_BYTES), bytes)) {
      uint32_t had_pages = fetch_and_relaxed(&superslab->dirty, ~mask) & mask;
      fetch_or_relaxed(&superslab->purged, mask);
      commit_give(count_bits(had_pages) * GRANULE_BYTES);
      purge_account(purge, bytes);
    }
    rest &= ~mask;
  }
}

static void purge_unused_slots(struct purge *purge, struct superslab *superslab) {
  uint32_t unused =
      load_acquire(&superslab->unused); /* pairs with return_slots: stamps are there */
  uint32_t due = due_slots(purge, superslab, unused & load_relaxed(&superslab->dirty));
  if (!due) return;
  uint32_t held =
      fetch_and_seq(&superslab->unused, ~due) & due; /* nobody else can take these now */
  purge_held_slots(purge, superslab, held);
  return_slots(superslab, held, purge->now_ms);
}

static void purge_superslab(struct purge *purge, struct superslab *superslab) {
  void *address = (void *)chunk_address(superslab->chunk);
  uint32_t dirty = load_relaxed(&superslab->dirty);
  /* Strict overcommit charges unused mappings. */
  bool give_address = purge->give_addresses || os_overcommit_is_strict();
  if (give_address && os_unmap(address, CHUNK_BYTES)) {
    superslab->is_mapped = false;
    fetch_sub_relaxed(&totals.superslabs_mapped, 1);
    store_relaxed(&superslab->dirty, 0);
    fetch_or_relaxed(&superslab->purged, dirty);
    commit_give(count_bits(dirty) * GRANULE_BYTES);
    purge_account(purge, count_bits(dirty) * GRANULE_BYTES);
  } else {
    purge_held_slots(purge, superslab, dirty);
  }
}

static void push_kept(struct superslab *superslab) {
  tagged_stack_push(&pool.kept, superslab_link, (uint32_t)superslab->chunk);
}

LONG_LIVED static bool are_too_many_kept(void) {
  return load_relaxed(&totals.superslabs_kept) * CHUNK_BYTES >
         limits_budget(options.superslab_keep * CHUNK_BYTES);
}

RESIDENT bool slab_pool_is_over_limit(void) {
  return UNLIKELY(load_relaxed(&limits.cache_end_bytes) != 0) && are_too_many_kept();
}

/* The LRU's old end, and whatever exceeds its budget, loses its pages. */
LONG_LIVED static void age_kept_superslabs(struct purge *purge) {
  uint32_t number = tagged_chain_reverse(tagged_stack_pop_all(&pool.kept), superslab_link);
  while (number != NO_ITEM) {
    struct superslab *superslab = superslab_of_chunk(number);
    number = load_relaxed(&superslab->link);
    if (are_too_many_kept() || purge_is_due(purge, superslab->stamp_ms)) {
      fetch_sub_relaxed(&totals.superslabs_kept, 1);
      purge_superslab(purge, superslab);
      tagged_stack_push(&pool.clean, superslab_link, (uint32_t)superslab->chunk);
    } else {
      push_kept(superslab);
    }
  }
}

void slab_pool_purge_kept(struct purge *purge) { age_kept_superslabs(purge); }

/* Under memory pressure clean SuperSlabs give their addresses back as well. */
static void unmap_clean_superslabs(struct purge *purge) {
  uint32_t number = tagged_stack_pop_all(&pool.clean);
  while (number != NO_ITEM) {
    struct superslab *superslab = superslab_of_chunk(number);
    number = load_relaxed(&superslab->link);
    if (superslab->is_mapped) purge_superslab(purge, superslab);
    tagged_stack_push(&pool.clean, superslab_link, (uint32_t)superslab->chunk);
  }
}

LONG_LIVED void slab_pool_purge(struct purge *purge) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) age_empty_slabs(purge, class);
  /* A search that raced with a release may have raised a hint too far: start afresh now and then. */
  for (unsigned kind = 0; kind < SLOT_COUNT_KINDS; kind++)
    store_relaxed(&pool.first_open_word[kind], 0);
  size_t end = directory_words();
  for (size_t index = 0; index < end; index = next_word(index))
    for (uint64_t open = open_in_word(index); open; open &= open - 1)
      purge_unused_slots(purge,
                         superslab_of_chunk(index * DIRECTORY_WORD_CHUNKS + lowest_bit(open)));
  age_kept_superslabs(purge);
  if (purge->give_addresses) unmap_clean_superslabs(purge);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

/* The first SuperSlab's record comes before the directory, and beside what else every process touches. */
static bool has_first_record(void) {
  if (!load_relaxed(&pool.spare_records))
    store_relaxed(&pool.spare_records, metadata_allocate(sizeof(struct superslab)));
  return load_relaxed(&pool.spare_records) != NULL;
}

RESIDENT bool slab_pool_init(void) {
  if (!has_first_record()) return false;
  pool.other_open = metadata_allocate(PIECE_WORDS * sizeof(uint64_t));
  return pool.other_open != NULL;
}

static void measure_open(struct slab_pool_sizes *sizes) {
  size_t end = directory_words();
  for (size_t index = 0; index < end; index = next_word(index)) {
    for (uint64_t open = open_in_word(index); open; open &= open - 1) {
      const struct superslab *superslab =
          superslab_of_chunk(index * DIRECTORY_WORD_CHUNKS + lowest_bit(open));
      uint32_t free_dirty = load_relaxed(&superslab->unused) & load_relaxed(&superslab->dirty);
      sizes->dirty_bytes += count_bits(free_dirty) * GRANULE_BYTES;
    }
  }
}

void slab_pool_measure(struct slab_pool_sizes *sizes) {
  uint64_t mapped_count = load_relaxed(&totals.superslabs_mapped);
  *sizes = (struct slab_pool_sizes){.mapped_bytes = mapped_count * CHUNK_BYTES};
  if (!pool.other_open) return;
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    sizes->empty_bytes +=
        load_relaxed(&pool.empty[class].slab_count) * slots_of_class(class) * GRANULE_BYTES;
  sizes->dirty_bytes = sizes->empty_bytes + load_relaxed(&totals.superslabs_kept) * CHUNK_BYTES;
  measure_open(sizes);
}
