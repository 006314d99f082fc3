#include "map/metadata.h"

#include "base/counters.h"
#include "map/commit.h"
#include "os/os.h"

/* cursor: the next free byte of the current chunk, or its end; 0 when there is none yet. */
static ATOMIC(uintptr_t) cursor;

static uintptr_t first_chunk; /* its address; ordered by `cursor` */

static size_t room_at(uintptr_t address) {
  uintptr_t used = (address - window.base) & (CHUNK_BYTES - 1);
  bool is_first = address - first_chunk < CHUNK_BYTES;
  return CHUNK_BYTES - (is_first ? RECORD_FIRST_MARGIN_BYTES : RECORD_MARGIN_BYTES) - used;
}

/* No thread waits for another: a thread that needs a chunk makes one, and the losers of the race keep theirs untouched for the next.
 * Otherwise, whenever a chunk is used up, thousands of threads would each map a chunk and give it back, all waiting for the kernel's lock
 * of the address space. Starts of chunks; 0: none. */
enum { SPARES_MAX = 16 };
static ATOMIC(uintptr_t) spares[SPARES_MAX];

/* acquire: pairs with keep_spare; the chunk is mapped before. */
static uintptr_t take_spare(void) {
  for (unsigned place = 0; place < SPARES_MAX; place++) {
    uintptr_t start = load_relaxed(&spares[place]);
    if (start && cas_strong_acq_rel(&spares[place], &start, 0)) return start;
  }
  return 0;
}

/* Resident though untouched: the memory is locked. */
static bool is_unused_memory_charged(uintptr_t start) {
  return os_overcommit_is_strict() || os_limit(OS_LIMIT_ADDRESS_SPACE) != UINT64_MAX ||
         os_limit(OS_LIMIT_DATA) != UINT64_MAX ||
         os_resident_bytes((void *)start, os_page_bytes()); /* NOLINT: made of addresses */
}

/* release: pairs with take_spare. */
static bool keep_spare(uintptr_t start) {
  for (unsigned place = 0; place < SPARES_MAX; place++) {
    if (load_relaxed(&spares[place])) continue;
    uintptr_t none = 0;
    if (cas_strong_acq_rel(&spares[place], &none, start)) return true;
  }
  return false;
}

RESIDENT static bool grow(uintptr_t seen) {
  const struct window_piece piece = {1, window.hardened_class ? 1 : 0,
                                     seen ? RECORD_MARGIN_BYTES : RECORD_FIRST_MARGIN_BYTES};
  uintptr_t start = take_spare();
  bool is_new = !start;
  if (is_new) {
    size_t chunk = window_grow(piece);
    if (chunk == NO_CHUNK) return false;
    if (!seen) first_chunk = chunk_address(chunk); /* one thread alone */
    start = chunk_address(chunk) + piece.margin_bytes;
  }
  /* release: pairs with the acquire load in bump; the chunk is mapped before. */
  if (cas_strong_acq_rel(&cursor, &seen, start)) return true;
  if ((is_new && is_unused_memory_charged(start)) || !keep_spare(start))
    window_give_back((start - window.base) >> CHUNK_SHIFT, piece);
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
