#include "map/window.h"

#include "os/lock.h"

/* Until window_init has run the bound is 0 and every address is foreign. */
struct window window;

/* Occupied places at the frontier that are tried before giving up. */
enum { OCCUPIED_ATTEMPTS = 64 };

/* The end of the user's addresses. In the last eighth the kernel itself places the program's
 * mappings, so no chunk lies there. */
static uintptr_t address_end;
static size_t last_window_chunk(void) { return (address_end / 8 * 7 - window.base) >> CHUNK_SHIFT; }

/* ---- the maps -------------------------------------------------------------------------------- */

static struct {
  ATOMIC(size_t) reserved_chunks; /* chunks whose entries can be read */
  ATOMIC(uint64_t) writable;      /* the youngest stretch of chunks whose entries can be written */
  ATOMIC(uint32_t) extender; /* the thread that extends the maps: a word (os/lock.h) for these: */
  size_t owner_chunks;       /* with entries in the owner map, if more than reserved_chunks */
  bool are_walled_in;        /* more entries find no place */
} maps;

/* Entries mapped at first, 136 KiB, unless the window is smaller: where all memory is locked
 * (mlockall), they count as well. They can be written from the start: to make one page so takes a
 * call and two more mappings. */
enum { FIRST_CHUNKS = 1024, LEAST_CHUNKS = 32 };

/* The chunk map's share of the page that both maps begin in: a small process needs no other. */
enum { CHUNK_MAP_SHARE_BYTES = 512 };

/* First and end of the pages that hold the entries of chunks first … end - 1. */
struct pages {
  uintptr_t first, end;
};

static uintptr_t page_of(uintptr_t address) { return address - address % os_page_bytes(); }
static uintptr_t page_end_of(uintptr_t address) { return round_up(address, os_page_bytes()); }

static struct pages owner_pages(size_t first, size_t end) {
  enum { BYTES_PER_CHUNK = GRANULES_PER_CHUNK * sizeof(uint32_t) };
  uintptr_t map = (uintptr_t)window.owner_map;
  return (struct pages){page_of(map + first * BYTES_PER_CHUNK),
                        page_end_of(map + end * BYTES_PER_CHUNK)};
}

static struct pages chunk_pages(size_t first, size_t end) {
  uintptr_t map = (uintptr_t)window.chunk_map_end;
  return (struct pages){page_of(map - end * sizeof(void *)),
                        page_end_of(map - first * sizeof(void *))};
}

static size_t pages_bytes(struct pages pages) { return pages.end - pages.first; }
static void *pages_address(struct pages pages) {
  return (void *)pages.first; /* NOLINT: maps and window are made of addresses */
}

static bool commit(struct pages pages) {
  return os_commit(pages_address(pages), pages_bytes(pages));
}

/* Makes entries writable; committing one twice is harmless. */
static bool commit_entries(size_t first, size_t end) {
  return commit(chunk_pages(first, end)) && commit(owner_pages(first, end));
}

/* Clears by hand at both ends, where the pages have other entries too; and everything, where the
 * system refuses (locked memory), or no page has only these entries: a page of 64 KiB has the
 * entries of a gibibyte. */
void owner_map_clear_many(size_t granule, size_t count) {
  uintptr_t map = (uintptr_t)window.owner_map;
  size_t end = granule + count;
  struct pages inner = {page_end_of(map + granule * sizeof(uint32_t)),
                        page_of(map + end * sizeof(uint32_t))};
  if (inner.first < inner.end && os_purge(pages_address(inner), pages_bytes(inner))) {
    for (; (uintptr_t)&window.owner_map[granule] < inner.first; granule++)
      owner_map_set(granule, 0);
    granule = (inner.end - map) / sizeof(uint32_t);
  }
  for (; granule < end; granule++) owner_map_set(granule, 0);
}

/* Reserves free addresses, or OS_OCCUPIED; no pages at all count as reserved. */
static enum os_map_result reserve(struct pages pages) {
  return pages_bytes(pages) ? os_reserve_at(pages_address(pages), pages_bytes(pages)) : OS_MAPPED;
}

/* Few pages of the maps are used, far apart. */
static void keep_huge_out(struct pages pages) {
  if (pages_bytes(pages) && os_huge_mode() == OS_HUGE_ALWAYS)
    os_advise_huge(pages_address(pages), pages_bytes(pages), false);
}

/* Reserves entries for the chunks from `old` to `wanted` in both maps. The owner map's part stays
 * if the other is refused. */
static enum os_map_result extend_maps(size_t old, size_t wanted) {
  size_t from = maps.owner_chunks > old ? maps.owner_chunks : old;
  struct pages above = {owner_pages(0, from).end,
                        owner_pages(0, from > wanted ? from : wanted).end};
  struct pages below = {chunk_pages(0, wanted).first, chunk_pages(0, old).first};
  enum os_map_result result = reserve(above);
  if (result != OS_MAPPED) return result;
  if (wanted > from) maps.owner_chunks = wanted;
  keep_huge_out(above);
  result = reserve(below);
  if (result == OS_MAPPED) keep_huge_out(below);
  return result;
}

/* Makes entries for `needed` chunks readable: the reservation doubles in place. One thread does,
 * and others wait: an occupied place is a wall then, and not what a thread has just reserved that
 * is no longer running. */
static NOINLINE bool reserve_entries(size_t needed) {
  if (!word_try(&maps.extender, thread_number())) word_wait(&maps.extender);
  size_t seen = load_relaxed(&maps.reserved_chunks), wanted = seen;
  while (wanted < needed) wanted *= 2;
  enum os_map_result result = OS_MAPPED;
  if (wanted > seen) result = maps.are_walled_in ? OS_OCCUPIED : extend_maps(seen, wanted);
  if (result == OS_MAPPED) store_release(&maps.reserved_chunks, wanted); /* pairs with cover */
  maps.are_walled_in = result == OS_OCCUPIED;
  word_give(&maps.extender);
  return result == OS_MAPPED;
}

void window_after_fork(void) { word_reset_in_child(&maps.extender); }

/* A stretch of chunks with writable entries; after a wall a new one begins, and entries between the
 * two are not charged. */
enum { FIRST_STRETCH_CHUNKS = 16, APART_CHUNKS = 512 };

static bool make_writable(size_t first, size_t end) {
  uint64_t seen =
      load_acquire(&maps.writable); /* pairs with the CAS below: the pages are writable */
  for (;;) {
    size_t from = seen >> 32, to = (uint32_t)seen;
    if (first >= from && end <= to) return true;
    if (first < from) return commit_entries(first, end); /* others are beyond a wall already */
    if (first > to + APART_CHUNKS) from = to = first;
    size_t target =
        to > from ? to + (to - from) : from + FIRST_STRETCH_CHUNKS; /* doubling: few calls */
    while (target < end) target += target - from;
    size_t reserved = load_acquire(&maps.reserved_chunks);
    if (target > reserved) target = reserved;
    if (!commit_entries(from, target)) return false;
    /* release: the pages are writable before another thread relies on it; committing twice is
     * harmless. */
    if (cas_weak_acq_rel(&maps.writable, &seen, (uint64_t)from << 32 | target)) return true;
  }
}

static ATOMIC(bool) diverts_operators;

static void raise_bound(ATOMIC(size_t) *object, size_t granules) {
  size_t bound = load_relaxed(object);
  /* acq_rel, for release: the entries can be read before the bound says so. */
  while (bound < granules && !cas_weak_acq_rel(object, &bound, granules)) {
  }
}

/* These bounds are never raised temporarily: another thread's delete would take a foreign block for
 * ours. */
static void raise_bounds(size_t granules) {
  raise_bound(&window.granule_count, granules);
  if (UNLIKELY(load_relaxed(&diverts_operators)))
    return; /* set before any thread grows the window */
  raise_bound(&window.deleted_count, granules);
  raise_bound(&window.array_bound, TINY_MAX_BYTES + 1);
}

void window_divert_operators(void) { store_relaxed(&diverts_operators, true); }

/* Makes the map entries of these chunks writable, and those of all earlier chunks readable. */
static bool cover(size_t first, size_t end) {
  size_t reserved = load_acquire(&maps.reserved_chunks); /* pairs with reserve_entries */
  if (UNLIKELY(end > reserved) && !reserve_entries(end)) return false;
  if (!make_writable(first, end)) return false;
  size_t writable_end = (uint32_t)load_acquire(&maps.writable);
  raise_bounds((end > writable_end ? end : writable_end) * GRANULES_PER_CHUNK);
  return true;
}

/* ---- placing --------------------------------------------------------------------------------- */

/* A random chunk-aligned base where the kernel places nothing by itself, and low: half of the
 * user's addresses lie after it, so walls of many terabytes leave the window room. Where that is
 * narrow, twice the window's size. */
RESIDENT static uint64_t draw_base(void) {
  uint64_t random = os_random();
  size_t window_bytes = load_relaxed(&window.chunk_limit) << CHUNK_SHIFT;
  uintptr_t low = address_end / 8, room = address_end / 4;
  if (room < 2 * window_bytes) room = 2 * window_bytes;
  uintptr_t places = (room - window_bytes) >> CHUNK_SHIFT;
  window.base = round_up(low + ((random % places) << CHUNK_SHIFT), CHUNK_BYTES);
  return random;
}

/* Places the maps in front of the window, with room for the entries of all addresses in between, at
 * a random distance too: from the unused bits of the random number. */
static void place_maps(uint64_t random) {
  uintptr_t room = address_end / GRANULE_BYTES * sizeof(uint32_t);
  uintptr_t page = page_of(window.base - room - CHUNK_BYTES - (random >> 32) % room);
  uintptr_t middle = page + CHUNK_MAP_SHARE_BYTES;
  window.owner_map = (ATOMIC(uint32_t) *)middle;   /* NOLINT */
  window.chunk_map_end = (ATOMIC(void *) *)middle; /* NOLINT */
}

/* Bases drawn until one is free: sanitizers reserve terabytes where the kernel places nothing. */
enum { BASE_ATTEMPTS = 64 };

/* Draws the window and maps its maps' first entries; false when refused. */
static bool map_first(size_t chunks) {
  for (unsigned attempt = 0; attempt < BASE_ATTEMPTS; attempt++) {
    place_maps(draw_base());
    struct pages pages = {chunk_pages(0, chunks).first, owner_pages(0, chunks).end};
    enum os_map_result result = os_map_at(pages_address(pages), pages_bytes(pages));
    if (result != OS_OCCUPIED) return result == OS_MAPPED;
  }
  return false;
}

RESIDENT bool window_init(uint64_t wanted_bytes) {
  address_end = os_user_address_end();
  if (wanted_bytes > address_end / 4) wanted_bytes = address_end / 4;
  size_t chunks = wanted_bytes >> CHUNK_SHIFT;
  store_relaxed(&window.chunk_limit, chunks);
  if (chunks > FIRST_CHUNKS) chunks = FIRST_CHUNKS;
  while (!map_first(chunks)) {
    if (chunks <= LEAST_CHUNKS) {
      store_relaxed(&window.chunk_limit, 0);
      return false;
    }
    chunks /= 2;
  }
  store_relaxed(&maps.reserved_chunks, chunks);
  store_relaxed(&maps.writable, chunks);
  return true;
}

/* ---- growing --------------------------------------------------------------------------------- */

/* Takes `count` chunks of addresses from the frontier, or NO_CHUNK. */
static size_t take_addresses(size_t count) {
  size_t first = load_relaxed(&window.frontier_chunk), limit;
  do {
    limit = load_relaxed(&window.chunk_limit); /* relaxed: a bound alone */
    if (count > limit || first > limit - count) return NO_CHUNK;
  } while (!cas_weak_acq_rel(&window.frontier_chunk, &first, first + count));
  return first;
}

/* Notes `count` chunks as foreign, or between foreign ones: the window ends that much later. */
static void note_others(size_t count) {
  size_t last = last_window_chunk();
  size_t limit = load_relaxed(&window.chunk_limit), wanted;
  do {
    wanted = limit + count < last ? limit + count : last;
    if (wanted <= limit) return;
    /* acq_rel is the weakest CAS there is here: only the sum matters. */
  } while (!cas_weak_acq_rel(&window.chunk_limit, &limit, wanted));
}

/* Chunks that could not be used: puts their addresses back, unless another thread took the next
 * ones already. */
static void give_addresses_back(size_t first, size_t count) {
  size_t expected = first + count;
  if (!cas_strong_acq_rel(&window.frontier_chunk, &expected, first)) note_others(count);
}

static size_t piece_chunks(struct window_piece piece) { return piece.count + piece.guard_count; }

static void *piece_address(size_t first, struct window_piece piece) {
  return (void *)(chunk_address(first) + piece.margin_bytes); /* NOLINT */
}
static size_t piece_bytes(struct window_piece piece) {
  return (piece.count << CHUNK_SHIFT) - 2 * piece.margin_bytes;
}

/* While no chunk is taken, and no other thread may ask for one (metadata_start), the window may
 * still move. */
static enum os_map_result map_piece(size_t first, struct window_piece piece) {
  for (unsigned attempt = 1;; attempt++) {
    enum os_map_result result = os_map_at(piece_address(first, piece), piece_bytes(piece));
    bool may_move = !load_relaxed(&window.granule_count) && attempt < BASE_ATTEMPTS;
    if (LIKELY(result != OS_OCCUPIED) || !may_move) return result;
    draw_base();
  }
}

static void unmap_piece(size_t first, struct window_piece piece) {
  os_unmap(piece_address(first, piece), piece_bytes(piece));
}

/* Maps the piece and enters it in the maps, or neither. */
static enum os_map_result open_piece(size_t first, struct window_piece piece) {
  enum os_map_result result = map_piece(first, piece);
  if (result != OS_MAPPED || cover(first, first + piece.count)) return result;
  unmap_piece(first, piece);
  return OS_NO_MEMORY;
}

/* After an occupied place the frontier also skips addresses, if the next place was occupied too:
 * walls of terabytes are passed in a few steps, each twice as wide, but at most an eighth of the
 * remaining window, so that a failing request leaves some to the next. */
static NOINLINE size_t pass_over(size_t count, size_t passed) {
  note_others(count);
  passed += count;
  if (passed == count) return passed;
  size_t last = last_window_chunk(), frontier = load_relaxed(&window.frontier_chunk);
  if (frontier < last && passed > (last - frontier) / 8) passed = (last - frontier) / 8;
  note_others(passed); /* first: the step may be longer than the rest of the window */
  take_addresses(passed);
  return 2 * passed;
}

RESIDENT size_t window_grow(struct window_piece piece) {
  size_t passed = 0;
  for (unsigned attempt = 0; attempt < OCCUPIED_ATTEMPTS; attempt++) {
    size_t first = take_addresses(piece_chunks(piece));
    if (first == NO_CHUNK) return NO_CHUNK;
    enum os_map_result result = open_piece(first, piece);
    if (result == OS_MAPPED) return first;
    if (result == OS_NO_MEMORY) {
      give_addresses_back(first, piece_chunks(piece));
      return NO_CHUNK;
    }
    passed = pass_over(piece_chunks(piece), passed);
  }
  return NO_CHUNK;
}

void window_give_back(size_t first, struct window_piece piece) {
  unmap_piece(first, piece);
  give_addresses_back(first, piece_chunks(piece));
}

/* The window is not reserved: the kernel may place a mapping there. */
void *window_reserve_outside(size_t bytes) {
  void *reserved = os_reserve_closed(bytes);
  uintptr_t begin = (uintptr_t)reserved;
  if (!reserved || (!is_in_window(begin) && !is_in_window(begin + bytes - 1))) return reserved;
  os_unmap(reserved, bytes);
  return NULL;
}

bool window_tries_occupied_again(ATOMIC(uint32_t) *tried_ms) {
  uint32_t now_ms = (uint32_t)os_now_coarse_ms(), before_ms = load_relaxed(tried_ms);
  if (now_ms - before_ms < OCCUPIED_RETRY_MS) return false;
  /* No order is needed: one thread is enough. */
  return cas_strong_acq_rel(tried_ms, &before_ms, now_ms);
}
