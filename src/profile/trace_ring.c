#include "profile/trace_ring.h"

#include "map/metadata.h"
#include "os/os.h"

/* A CLOCK comes, and a look is due, after 20 to 40 ms. */
enum { CLOCK_SHIFT = CPU_TICKS_SHIFT + 14 };
/* CLOCK, TIME, REGION, three of SIZE, and the event. */
enum { WORDS_AT_ONCE = TRACE_CLOCK_WORDS + 6, WHAT_BITS = 32 - TRACE_OPERATION_BITS };

static ATOMIC(uint32_t) rings_with_pages; /* relaxed: seen late, the next look gives them back */

bool trace_rings_rest(void) { return !load_relaxed(&rings_with_pages); }

struct trace_ring *trace_ring_make(void) {
  struct trace_ring *ring = metadata_allocate(sizeof *ring);
  if (ring) fetch_add_relaxed(&rings_with_pages, 1);
  return ring;
}

/* relaxed: `written` orders them for the tool. */
INLINE void put(struct trace_ring *ring, uint64_t *at, enum trace_operation operation,
                uint64_t what) {
  store_relaxed(&ring->words[(*at)++ % TRACE_RING_WORDS],
                (uint32_t)(what << TRACE_OPERATION_BITS) | operation);
}
static void put_clock(struct trace_ring *ring, uint64_t *at, uint64_t now) {
  const uint64_t parts[] = {now, os_now_ns()};
  for (unsigned part = 0; part < 6; part++)
    put(ring, at, TRACE_CLOCK, parts[part / 3] >> (part % 3 * WHAT_BITS));
  put(ring, at, TRACE_CLOCK, ring->lost);
  put(ring, at, TRACE_CLOCK, ring->thread_id);
  ring->clock = now;
  ring->lost = 0;
}

/* The words that an event at this time and address needs first. */
static void put_place(struct trace_ring *ring, uint64_t *at, uintptr_t address, uint64_t now) {
  bool is_clock_due = ring->lost || (now - ring->clock) >> CLOCK_SHIFT;
  if (UNLIKELY(is_clock_due)) put_clock(ring, at, now);
  if (is_clock_due || !trace_is_now(ring, now)) {
    put(ring, at, TRACE_TIME, now - ring->clock);
    ring->time = now;
    ring->exact_until = *at + TRACE_EXACT_WORDS;
  }
  if (address >> 32 == ring->region) return;
  ring->region = (uint32_t)(address >> 32);
  put(ring, at, TRACE_REGION, ring->region);
}

static void put_size(struct trace_ring *ring, uint64_t *at, size_t size, unsigned power) {
  if (power) put(ring, at, TRACE_SIZE, (uint64_t)2 << TRACE_SIZE_BITS | power);
  uint64_t above = size >> TRACE_SIZE_BITS;
  if (above) put(ring, at, TRACE_SIZE, (uint64_t)1 << TRACE_SIZE_BITS | above);
  put(ring, at, TRACE_SIZE, size & low_bits(TRACE_SIZE_BITS));
}

NOINLINE bool trace_ring_note(struct trace_ring *ring, enum trace_operation operation,
                              uintptr_t address, size_t size, unsigned power, uint64_t now) {
  uint64_t at = load_relaxed(&ring->written);
  bool is_look_due =
      (int64_t)(now - ring->looked) >> CLOCK_SHIFT > 0; /* `now` may be an older time */
  if (is_look_due) ring->looked = now;
  /* acquire: the tool has read the words that are overwritten from here on. */
  ring->room = load_acquire(&ring->read) + TRACE_RING_WORDS - WORDS_AT_ONCE;
  if (UNLIKELY(at > ring->room)) {
    ring->lost++;
    return is_look_due;
  }
  put_place(ring, &at, address, now);
  uint64_t *last = trace_size_of_slab(ring, address);
  if (operation == TRACE_RESIZE || (operation == TRACE_TAKE && (power || *last != size)))
    put_size(ring, &at, size, power);
  if (operation == TRACE_TAKE) *last = size;
  put(ring, &at, operation, address >> TRACE_OPERATION_BITS);
  store_release(&ring->written, at); /* the words before it; pairs with the tool's read */
  return is_look_due;
}

bool trace_ring_begin(struct trace_ring *ring, uint32_t thread_id) {
  if (ring->purged_bytes) {
    if (!metadata_take_again(ring->purged_bytes)) return false;
    fetch_add_relaxed(&rings_with_pages, 1);
  }
  ring->purged_bytes = 0;
  ring->time = ring->clock = ring->looked = ring->room = 0; /* the next event brings them */
  ring->region = 0;
  for (unsigned slab = 0; slab < TRACE_SLABS; slab++) ring->sizes[slab] = UINT64_MAX;
  ring->exact_until = UINT64_MAX;
  ring->thread_id = thread_id;
  return true;
}

void trace_ring_rest(struct trace_ring *ring, bool is_left) {
  /* acquire: the tool has read the words. */
  bool is_read = load_acquire(&ring->read) == load_relaxed(&ring->written);
  if (ring->purged_bytes || !(is_read || is_left)) return;
  ring->purged_bytes = metadata_purge(ring->words, sizeof ring->words);
  if (ring->purged_bytes) fetch_sub_relaxed(&rings_with_pages, 1);
}

bool trace_ring_take(struct trace_ring *ring, uintptr_t address, size_t size, size_t alignment) {
  return trace_ring_note(ring, TRACE_TAKE, address, size, lowest_bit(alignment), cpu_ticks());
}

bool trace_ring_resize(struct trace_ring *ring, uintptr_t address, size_t size) {
  return trace_ring_note(ring, TRACE_RESIZE, address, size, 0, cpu_ticks());
}
