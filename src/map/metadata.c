#include "map/metadata.h"

#include "base/counters.h"
#include "map/commit.h"
#include "os/lock.h"

/* cursor: the next free byte of the current chunk, or its end; 0 when there is none yet. */
static ATOMIC(uintptr_t) cursor;

static uintptr_t first_chunk; /* its address; ordered by `cursor` */

static size_t room_at(uintptr_t address) {
  if (!address) return 0;
  uintptr_t used = (address - window.base) & (CHUNK_BYTES - 1);
  bool is_first = address - first_chunk < CHUNK_BYTES;
  return CHUNK_BYTES - (is_first ? RECORD_FIRST_MARGIN_BYTES : RECORD_MARGIN_BYTES) - used;
}

static ATOMIC(uint32_t) maker; /* the thread that makes a chunk: a word (os/lock.h) */

RESIDENT static bool grow(void) {
  uintptr_t seen = load_relaxed(&cursor);
  const struct window_piece piece = {1, window.hardened_bit ? 1 : 0,
                                     seen ? RECORD_MARGIN_BYTES : RECORD_FIRST_MARGIN_BYTES};
  size_t chunk = window_grow(piece);
  if (chunk == NO_CHUNK) return false;
  if (!seen) first_chunk = chunk_address(chunk); /* one thread alone */
  /* release: pairs with the acquire load in bump; the chunk is mapped before. */
  store_release(&cursor, chunk_address(chunk) + piece.margin_bytes);
  return true;
}

/* One thread makes a chunk, and others wait: thousands would each map one and give it back, and
 * wait for the kernel's lock meanwhile. */
static NOINLINE bool grow_together(size_t bytes) {
  if (!word_try(&maker, thread_number())) word_wait(&maker);
  bool has_room = room_at(load_relaxed(&cursor)) >= bytes || grow();
  word_give(&maker);
  return has_room;
}

void metadata_after_fork(void) { word_reset_in_child(&maker); }

RESIDENT bool metadata_start(void) { return load_relaxed(&cursor) || grow(); }

static void *bump(size_t bytes) {
  for (;;) {
    uintptr_t at = load_acquire(&cursor);
    if (room_at(at) < bytes) {
      if (!(os_is_multi_threaded() ? grow_together(bytes) : grow())) return NULL;
    } else if (cas_weak_acq_rel(&cursor, &at, at + bytes)) {
      fetch_add_relaxed(&totals.metadata_bytes, bytes);
      return (void *)at; /* NOLINT: memory comes from addresses */
    }
  }
}

RESIDENT void *metadata_allocate(size_t bytes) {
  bytes = round_up(bytes, CACHE_LINE_BYTES);
  ASSERT(bytes <= RECORD_CHUNK_BYTES);
  if (!commit_take(bytes)) return NULL;
  void *record = bump(bytes);
  if (!record) commit_give(bytes);
  return record;
}

size_t metadata_purge(void *records, size_t bytes) {
  size_t page = os_page_bytes();
  uintptr_t first = round_up((uintptr_t)records, page);
  uintptr_t end = ((uintptr_t)records + bytes) & ~(page - 1);
  if (end <= first || !os_purge((void *)first, end - first)) return 0;
  fetch_sub_relaxed(&totals.metadata_bytes, end - first);
  commit_give(end - first);
  return end - first;
}

bool metadata_take_again(size_t bytes) {
  if (!commit_take(bytes)) return false;
  fetch_add_relaxed(&totals.metadata_bytes, bytes);
  return true;
}
