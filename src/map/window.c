#include "map/window.h"

#include "os/os.h"

/* Until window_init has run the bound is 0 and every address is foreign. */
struct window window;

/* Chunks that an attempt may find occupied by somebody else's mapping before we give up. */
enum { OCCUPIED_ATTEMPTS = 4096 };

#define WINDOW_MIN_BYTES ((uint64_t)64 << 20)

/* Under an address-space limit the maps themselves count: a window of four times the limit leaves
 * room for fragmentation while its maps take 1/4096 of the limit. */
static uint64_t window_bytes_within_limits(uint64_t wanted_bytes) {
  uint64_t limit = os_address_space_limit();
  if (limit < wanted_bytes / 4) wanted_bytes = limit * 4;
  if (wanted_bytes < WINDOW_MIN_BYTES) wanted_bytes = WINDOW_MIN_BYTES;
  return round_up(wanted_bytes, WINDOW_MIN_BYTES);
}

static size_t owner_map_bytes(uint64_t window_bytes) {
  return round_up((window_bytes >> GRANULE_SHIFT) * sizeof(uint32_t), os_page_bytes());
}

static size_t chunk_map_bytes(uint64_t window_bytes) {
  return round_up((window_bytes >> CHUNK_SHIFT) * sizeof(void *), os_page_bytes());
}

/* Of the page that both maps begin in, what is the chunk map's: a small process needs no other. */
enum { CHUNK_MAP_SHARE_BYTES = 512 };

static bool reserve_maps(uint64_t window_bytes) {
  size_t below = chunk_map_bytes(window_bytes), above = owner_map_bytes(window_bytes);
  char *maps = os_reserve(below + os_page_bytes() + above);
  if (!maps) return false;
  char *middle = maps + below + CHUNK_MAP_SHARE_BYTES;
  window.owner_map = (ATOMIC(uint32_t) *)(void *)middle;
  window.chunk_map_end = (ATOMIC(void *) *)(void *)middle;
  return true;
}

/* A random chunk-aligned base in the middle half of the user's addresses, where the kernel places
 * nothing by itself: programs, heaps and libraries lie at the ends. */
static uintptr_t random_base(uint64_t window_bytes, uintptr_t end) {
  uintptr_t low = end / 8, high = end / 8 * 5;
  uintptr_t places = high - low > window_bytes ? (high - low - window_bytes) >> CHUNK_SHIFT : 1;
  return round_up(low + ((os_random() % places) << CHUNK_SHIFT), CHUNK_BYTES);
}

static void draw_base(void) {
  window.base = random_base(window.chunk_limit << CHUNK_SHIFT, os_user_address_end());
}

/* Bases drawn until one is free: sanitizers reserve terabytes where the kernel places nothing. */
enum { BASE_ATTEMPTS = 64 };

static void draw_free_base(void) {
  for (unsigned attempt = 1; attempt < BASE_ATTEMPTS; attempt++) {
    draw_base();
    if (!os_is_occupied((const void *)window.base, window.chunk_limit << CHUNK_SHIFT)) return;
  }
}

bool window_init(uint64_t wanted_bytes) {
  uintptr_t end = os_user_address_end();
  if (wanted_bytes > end / 4) wanted_bytes = end / 4;
  uint64_t bytes = window_bytes_within_limits(wanted_bytes);
  while (!reserve_maps(bytes)) {
    if (bytes <= WINDOW_MIN_BYTES) return false;
    bytes = round_up(bytes / 2, WINDOW_MIN_BYTES);
  }
  window.chunk_limit = bytes >> CHUNK_SHIFT;
  draw_base();
  return true;
}

/* What is accessible already is harmless to commit again. */
static bool commit_maps(size_t granules) {
  uintptr_t middle = (uintptr_t)window.owner_map, page_bytes = os_page_bytes();
  uintptr_t start = middle - granules / GRANULES_PER_CHUNK * sizeof(void *);
  uintptr_t end = round_up(middle + granules * sizeof(uint32_t), page_bytes);
  start -= start % page_bytes;
  return os_commit((void *)start, end - start); /* NOLINT: the maps lie around one address */
}

/* Makes the map entries of all granules below `granule_end` accessible. */
static bool cover(size_t granule_end) {
  size_t covered = load_acquire(&window.granule_count);
  while (covered < granule_end) {
    size_t target =
        covered ? covered * 2 : 16 * GRANULES_PER_CHUNK; /* doubling: few system calls */
    while (target < granule_end) target *= 2;
    size_t all = window.chunk_limit * GRANULES_PER_CHUNK;
    if (target > all) target = all;
    if (!commit_maps(target)) return false;
    /* release: the pages are accessible before the bound says so; committing twice is harmless. */
    if (cas_weak_acq_rel(&window.granule_count, &covered, target)) covered = target;
  }
  return true;
}

/* Takes `count` chunks of addresses from the frontier, or NO_CHUNK. */
static size_t take_addresses(size_t count) {
  size_t first = load_relaxed(&window.frontier_chunk);
  do {
    if (count > window.chunk_limit || first > window.chunk_limit - count) return NO_CHUNK;
  } while (!cas_weak_acq_rel(&window.frontier_chunk, &first, first + count));
  return first;
}

/* After a refused mapping: puts the addresses back unless somebody took the next ones already. */
static void give_addresses_back(size_t first, size_t count) {
  size_t expected = first + count;
  cas_strong_acq_rel(&window.frontier_chunk, &expected, first);
}

/* The window's first chunk shows whether the place is free; to ask for all of it each time would cost a
 * short process 1 % of its time.  While nobody has a chunk it may lie anywhere else. */
static enum os_map_result map_chunks(size_t first, size_t count) {
  void *address = (void *)chunk_address(first); /* NOLINT: the window is made of addresses */
  enum os_map_result result = os_map_at(address, count << CHUNK_SHIFT);
  if (LIKELY(result != OS_OCCUPIED) || load_relaxed(&window.granule_count)) return result;
  draw_free_base();
  address = (void *)chunk_address(first); /* NOLINT */
  return os_map_at(address, count << CHUNK_SHIFT);
}

/* Mapped and known to the maps, or neither. */
static enum os_map_result open_chunks(size_t first, size_t count) {
  enum os_map_result result = map_chunks(first, count);
  if (result != OS_MAPPED || cover((first + count) * GRANULES_PER_CHUNK)) return result;
  os_unmap((void *)chunk_address(first), count << CHUNK_SHIFT); /* NOLINT */
  return OS_NO_MEMORY;
}

size_t window_grow(size_t count) {
  for (unsigned attempt = 0; attempt < OCCUPIED_ATTEMPTS; attempt++) {
    size_t first = take_addresses(count);
    if (first == NO_CHUNK) return NO_CHUNK;
    enum os_map_result result = open_chunks(first, count);
    if (result == OS_MAPPED) return first;
    if (result == OS_NO_MEMORY) {
      give_addresses_back(first, count);
      return NO_CHUNK;
    }
  }
  return NO_CHUNK;
}

void window_skip(void) { take_addresses(1); }
