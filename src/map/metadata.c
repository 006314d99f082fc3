#include "map/metadata.h"

#include "base/counters.h"
#include "config/options.h"
#include "map/commit.h"
#include "os/os.h"

/* cursor: the next free byte of the current chunk, or its end; 0 when there is none yet. */
static ATOMIC(uintptr_t) cursor;

static size_t room_at(uintptr_t address) {
  uintptr_t used = (address - window.base) & (CHUNK_BYTES - 1);
  return CHUNK_BYTES - RECORD_MARGIN_BYTES - used;
}

/* A new chunk for the loser of a race is given back: nobody waits for anybody. */
RESIDENT static bool grow(uintptr_t seen) {
  const struct window_piece piece = {1, options.harden ? 1 : 0, RECORD_MARGIN_BYTES};
  size_t chunk = window_grow(piece);
  if (chunk == NO_CHUNK) return false;
  uintptr_t start = chunk_address(chunk) + RECORD_MARGIN_BYTES;
  /* release: pairs with the acquire load in bump; the chunk is mapped before. */
  if (!cas_strong_acq_rel(&cursor, &seen, start)) window_give_back(chunk, piece);
  return true;
}

RESIDENT bool metadata_start(void) { return load_relaxed(&cursor) || grow(0); }

static void *bump(size_t bytes) {
  for (;;) {
    uintptr_t at = load_acquire(&cursor);
    if (!at || room_at(at) < bytes) {
      if (!grow(at)) return NULL;
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
