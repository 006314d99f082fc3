#include "pool/superslab.h"

#include "base/counters.h"
#include "base/tagged_stack.h"
#include "config/options.h"
#include "map/commit.h"
#include "map/metadata.h"
#include "pool/purge.h"

_Static_assert(SUPERSLAB_RECORD_BYTES <= (size_t)RECORD_CHUNK_BYTES,
               "metadata_allocate gives no more");

static struct {
  ATOMIC(struct superslab *) spare_records; /* without a chunk: the system refused it */
  struct tagged_stack occupied;             /* in whose addresses others have mapped something */
  ATOMIC(uint32_t) occupied_tried_ms;
} superslabs;

/* ---- records --------------------------------------------------------------------------------------- */

static void keep_record(struct superslab *record) {
  record->next_spare = load_relaxed(&superslabs.spare_records);
  /* release: the link; pairs with the exchange in take_record. */
  while (!cas_weak_acq_rel(&superslabs.spare_records, &record->next_spare, record)) {
  }
}

/* Taking all spare records at once, and giving the others back, needs no tag. */
RESIDENT static struct superslab *take_record(void) {
  struct superslab *record = exchange_acquire(&superslabs.spare_records, NULL);
  if (!record) return metadata_allocate(SUPERSLAB_RECORD_BYTES);
  store_relaxed(&record->slots, 0);
  keep_store_order(); /* what is written before it is read costs one page fault, not two */
  for (struct superslab *rest = record->next_spare, *next; rest; rest = next) {
    next = rest->next_spare;
    keep_record(rest);
  }
  return record;
}

RESIDENT bool superslab_init(void) {
  if (!load_relaxed(&superslabs.spare_records))
    store_relaxed(&superslabs.spare_records, metadata_allocate(SUPERSLAB_RECORD_BYTES));
  return load_relaxed(&superslabs.spare_records) != NULL;
}

/* In hardened mode it has bits for what is live. */
static bool has_live_bits(struct superslab *record) {
  size_t bytes = LIVE_WORDS * sizeof *record->live;
  if (options.harden && !record->live) record->live = metadata_allocate(bytes);
  return !options.harden || record->live;
}

/* ---- huge pages -------------------------------------------------------------------------------------- */

/* A process that has so many and needs one more will use it up: then a huge page is less work, and no waste. */
enum { SUPERSLABS_BEFORE_HUGE = 32 };

RESIDENT static void allow_huge(struct superslab *superslab) {
  bool will_be_full = load_relaxed(&totals.superslabs_mapped) >= SUPERSLABS_BEFORE_HUGE;
  if (options.harden || (!options.thp && !will_be_full)) /* hardened: half of it is closed */
    huge_keep_out(chunk_address(superslab->chunk), CHUNK_BYTES);
  else
    store_relaxed(&superslab->may_be_huge, huge_let_in(superslab->chunk, 1));
}

/* The first touch may make all pages resident that this SuperSlab has not: so they count, and what is not used goes
 * back by age.  A program that asked for huge pages (HAKMEM_THP) wants to keep them. */
static NOINLINE void count_all_slots(struct superslab *superslab) {
  uint32_t more = ~slots_dirty(load_relaxed(&superslab->slots));
  uint32_t now_ms = (uint32_t)os_now_coarse_ms();
  if (!commit_take(count_bits(more) * GRANULE_BYTES)) {
    superslab_refuse_huge(superslab);
    return;
  }
  for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB; slot++)
    store_relaxed(&superslab->freed_ms[slot], now_ms);
  fetch_or_relaxed(&superslab->slots, slots_as_dirty(ALL_SLOTS)); /* ordered by slots_return */
  purge_want();
}

static void count_huge(struct superslab *superslab) {
  if (UNLIKELY(load_relaxed(&superslab->may_be_huge)) && !options.thp) count_all_slots(superslab);
}

/* ---- addresses ---------------------------------------------------------------------------------------- */

/* Hardened mode: nobody touches the others.  Where the system refuses they are open, and as unused. */
COLD static void close_upper_slots(const struct superslab *superslab) {
  os_close_pages((void *)(chunk_address(superslab->chunk) + CHUNK_BYTES / 2), CHUNK_BYTES / 2);
}

RESIDENT static void note_mapped(struct superslab *superslab) {
  if (UNLIKELY(options.harden)) close_upper_slots(superslab);
  superslab->is_mapped = true;
  fetch_add_relaxed(&totals.superslabs_mapped, 1);
}

RESIDENT static size_t grow_by_chunk(void) {
  size_t chunk = window_grow(1, 0);
  if (chunk == NO_CHUNK || slot_index_covers(chunk)) return chunk;
  window_give_back(chunk, 1, 0);
  return NO_CHUNK;
}

RESIDENT struct superslab *superslab_make(void) {
  struct superslab *superslab = take_record();
  if (!superslab) return NULL;
  size_t chunk = has_live_bits(superslab) ? grow_by_chunk() : NO_CHUNK;
  if (chunk == NO_CHUNK) { /* programs may ask again and again */
    keep_record(superslab);
    return NULL;
  }
  superslab->chunk = chunk;
  note_mapped(superslab);
  chunk_publish(chunk, superslab);
  fetch_add_relaxed(&totals.superslabs, 1);
  allow_huge(superslab);
  count_huge(superslab);
  return superslab;
}

static enum os_map_result map_again(struct superslab *superslab) {
  if (superslab->is_mapped) return OS_MAPPED;
  enum os_map_result result = os_map_at((void *)chunk_address(superslab->chunk), CHUNK_BYTES);
  if (result != OS_MAPPED) return result;
  if (!load_relaxed(&superslab->may_be_huge))
    huge_keep_out(chunk_address(superslab->chunk), CHUNK_BYTES);
  note_mapped(superslab);
  return OS_MAPPED;
}

bool superslab_unmap(struct superslab *superslab) {
  if (!os_unmap((void *)chunk_address(superslab->chunk), CHUNK_BYTES)) return false;
  superslab->is_mapped = false;
  fetch_sub_relaxed(&totals.superslabs_mapped, 1);
  return true;
}

/* ---- occupied ones -------------------------------------------------------------------------------------- */

static ATOMIC(uint32_t) *occupied_link(uint32_t number) {
  return &superslab_of_chunk(number)->next_occupied;
}

enum os_map_result superslab_use_again(struct superslab *superslab) {
  enum os_map_result result = map_again(superslab);
  if (result == OS_MAPPED) count_huge(superslab);
  if (result == OS_OCCUPIED)
    tagged_stack_push(&superslabs.occupied, occupied_link, (uint32_t)superslab->chunk);
  return result;
}

RESIDENT uint32_t superslabs_set_aside(void) {
  if (LIKELY(tagged_stack_is_empty(&superslabs.occupied))) return NO_ITEM;
  if (!window_tries_occupied_again(&superslabs.occupied_tried_ms)) return NO_ITEM;
  return tagged_stack_pop_all(&superslabs.occupied);
}
