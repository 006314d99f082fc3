#include "pool/superslab.h"

#include "base/counters.h"
#include "map/commit.h"
#include "map/metadata.h"
#include "purge/purge.h"

_Static_assert(SUPERSLAB_RECORD_BYTES + LIVE_WORDS * 8 <= (size_t)RECORD_CHUNK_BYTES,
               "metadata_allocate gives no more");

/* For a chunk that was just taken; in hardened mode followed by bits for live blocks. */
RESIDENT static struct superslab *make_record(size_t chunk) {
  if (!slot_index_covers(chunk)) return NULL;
  size_t live_bytes = window.hardened_bit ? LIVE_WORDS * sizeof(uint64_t) : 0;
  struct superslab *record = metadata_allocate(SUPERSLAB_RECORD_BYTES + live_bytes);
  if (!record) return NULL;
  record->chunk = chunk;
  keep_store_order(); /* writing it before it is read costs one page fault, not two */
  if (live_bytes) record->live = (void *)((char *)record + SUPERSLAB_RECORD_BYTES);
  return record;
}

/* The first touch makes all pages of this SuperSlab resident: so all count, and unused ones go back
 * by age. */
static NOINLINE void touch_all_slots(struct superslab *superslab) {
  uint32_t now_ms = (uint32_t)os_now_coarse_ms();
  ASSERT(!slots_dirty(load_relaxed(&superslab->slots)));
  if (!(limits.hard_bytes ? commit_take_if_allowed(CHUNK_BYTES) : commit_take(CHUNK_BYTES))) {
    superslab_refuse_huge(superslab);
    return;
  }
  for (unsigned slot = 0; slot < SLOTS_PER_SUPERSLAB; slot++)
    store_relaxed(&superslab->freed_ms[slot], now_ms);
  fetch_or_relaxed(&superslab->slots, slots_as_dirty(ALL_SLOTS)); /* ordered by slots_return */
  huge_touch(superslab->chunk);
  purge_want();
}

/* A process that holds 32 MiB will use up another SuperSlab: then a huge page is less work, and
 * wastes 6 % at most. */
#define HUGE_FROM_BYTES ((uint64_t)32 << 20)

ATOMIC(bool) superslab_is_wanted;

void superslab_want_ahead(void) {
  if (!huge_may_be_requested()) return;
  store_seq(&superslab_is_wanted, true); /* seq: before how the helper rests; pairs with `rest` */
  if (load_seq(&purge_helper_waits) != PURGE_REST_NONE) purge_wake();
}

/* Where there is a helper thread, calls leave huge pages to it. A hard limit counts memory that is
 * made ahead. */
static bool leaves_it_to_helper(bool is_ahead) {
  return !is_ahead && load_relaxed(&purge_has_helper) && !limits.hard_bytes;
}

/* For a SuperSlab without a resident page. */
RESIDENT static void settle_huge(struct superslab *superslab, bool is_just_mapped, bool is_ahead) {
  uint64_t mapped = load_relaxed(&totals.superslabs_mapped);
  char state = load_relaxed(&superslab->huge_state);
  bool is_large = load_relaxed(&totals.committed_bytes) >= HUGE_FROM_BYTES;
  if (state == HUGE_LET_IN || (is_just_mapped && is_large && mapped > 1)) {
    bool is_left = leaves_it_to_helper(is_ahead);
    if (is_left && is_large) superslab_want_ahead();
    state = huge_request(superslab->chunk, state, is_just_mapped, is_large && !is_left);
    store_relaxed(&superslab->huge_state, state);
    if (state == HUGE_LET_IN) touch_all_slots(superslab);
  } else if (is_just_mapped && mapped > 1) {
    huge_keep_out(chunk_address(superslab->chunk), CHUNK_BYTES);
  } else if (is_just_mapped) { /* unasked */
    os_advise_huge((void *)chunk_address(superslab->chunk), CHUNK_BYTES, false);
  }
}

/* Hardened mode closes the other slots. Where the system refuses they are open, and still
 * unused. */
RESIDENT static void note_mapped(struct superslab *superslab) {
  if (UNLIKELY(usable_slots() != ALL_SLOTS))
    os_close_pages((void *)(chunk_address(superslab->chunk) + CHUNK_BYTES / 2), CHUNK_BYTES / 2);
  superslab->is_mapped = true;
  fetch_add_relaxed(&totals.superslabs_mapped, 1);
}

RESIDENT struct superslab *superslab_make(bool is_ahead) {
  const struct window_piece piece = {.count = 1};
  size_t chunk = window_grow(piece);
  struct superslab *superslab = chunk == NO_CHUNK ? NULL : make_record(chunk);
  if (!superslab) {
    if (chunk != NO_CHUNK) window_give_back(chunk, piece);
    return NULL;
  }
  note_mapped(superslab);
  chunk_publish(chunk, superslab);
  fetch_add_relaxed(&totals.superslabs, 1);
  settle_huge(superslab, true, is_ahead);
  return superslab;
}

enum os_map_result superslab_use_again(struct superslab *superslab, bool is_ahead) {
  bool is_just_mapped = !superslab->is_mapped;
  if (is_just_mapped) {
    enum os_map_result result = os_map_at((void *)chunk_address(superslab->chunk), CHUNK_BYTES);
    if (result != OS_MAPPED) return result;
    note_mapped(superslab);
  }
  settle_huge(superslab, is_just_mapped, is_ahead);
  return OS_MAPPED;
}

bool superslab_unmap(struct superslab *superslab) {
  if (!os_unmap((void *)chunk_address(superslab->chunk), CHUNK_BYTES)) return false;
  superslab->is_mapped = false;
  store_relaxed(&superslab->huge_state, huge_forget(load_relaxed(&superslab->huge_state)));
  fetch_sub_relaxed(&totals.superslabs_mapped, 1);
  return true;
}

/* The record's neighbours begin and end anywhere. Neither its purge nor its reuse is counted. */
void superslab_purge_bitmaps(struct superslab *superslab) {
  uintptr_t record_end = (uintptr_t)superslab + SUPERSLAB_RECORD_BYTES, page = os_page_bytes();
  uintptr_t begin = round_up(record_end - SUPERSLAB_BITMAP_BYTES, page);
  uintptr_t end = round_down(record_end, page);
  if (begin < end && os_purge((void *)begin, end - begin)) /* NOLINT: memory comes from addresses */
    fetch_sub_relaxed(&totals.purged_bytes, end - begin);
}
