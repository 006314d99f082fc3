#include "profile/trace_ring.h"

#include "base/bits.h"
#include "map/metadata.h"
#include "os/os.h"

/* Events of 1 to 3 us have one TIME; a CLOCK comes, and a look is due, after 20 to 40 ms. */
enum { TIME_SHIFT = CPU_TICKS_SHIFT, CLOCK_SHIFT = CPU_TICKS_SHIFT + 14 };
/* LOST, THREAD, TIME, CLOCK, and an event of two words. */
enum { WORDS_AT_ONCE = 6 };

struct trace_ring *trace_ring_make(void) {
  return metadata_allocate(sizeof(struct trace_ring));
}

INLINE uint64_t word_of(enum trace_operation operation, uint64_t what) {
  return what << TRACE_OPERATION_BITS | operation;
}

/* relaxed: `written` orders them for the tool. */
INLINE void put(struct trace_ring *ring, uint64_t *at, uint64_t word) {
  store_relaxed(&ring->words[(*at)++ % TRACE_RING_WORDS], word);
}

/* Makes room for an event at *at; false when there is none. */
INLINE bool begin(struct trace_ring *ring, uint64_t *at, uint64_t now) {
  *at = load_relaxed(&ring->written);
  /* acquire: the tool has read what is overwritten from here on. */
  if (UNLIKELY(*at + WORDS_AT_ONCE - load_acquire(&ring->read) > TRACE_RING_WORDS)) {
    ring->lost++;
    return false;
  }
  if (UNLIKELY(ring->lost)) {
    put(ring, at, word_of(TRACE_LOST, ring->lost));
    ring->lost = 0;
  }
  if (UNLIKELY(ring->thread_id)) {
    put(ring, at, word_of(TRACE_THREAD, ring->thread_id));
    ring->thread_id = 0;
  }
  if ((now ^ ring->time) >> TIME_SHIFT) {
    ring->time = now;
    put(ring, at, word_of(TRACE_TIME, now));
  }
  return true;
}

INLINE bool note(struct trace_ring *ring, uint64_t first, uint64_t second, unsigned words) {
  uint64_t at, now = cpu_ticks();
  bool is_clock_due = UNLIKELY((now - ring->clock) >> CLOCK_SHIFT);
  if (is_clock_due) ring->clock = now;
  if (UNLIKELY(!begin(ring, &at, now))) return is_clock_due;
  if (is_clock_due) put(ring, &at, word_of(TRACE_CLOCK, os_now_ns()));
  put(ring, &at, first);
  if (words == 2) put(ring, &at, second);
  store_release(&ring->written, at); /* the words before it; pairs with the tool's read */
  return is_clock_due;
}

INLINE uint64_t place_of(uintptr_t address) {
  return ((uint64_t)address >> 3) & low_bits(TRACE_ADDRESS_BITS);
}

bool trace_ring_begin(struct trace_ring *ring, uint32_t thread_id) {
  if (ring->purged_bytes && !metadata_take_again(ring->purged_bytes)) return false;
  ring->purged_bytes = 0;
  ring->time = ring->clock = 0; /* the next event brings both, and the thread */
  ring->thread_id = thread_id;
  return true;
}

void trace_ring_rest(struct trace_ring *ring, bool is_left) {
  /* acquire: the tool has read the words. */
  bool is_read = load_acquire(&ring->read) == load_relaxed(&ring->written);
  if (!ring->purged_bytes && (is_read || is_left))
    ring->purged_bytes = metadata_purge(ring->words, sizeof ring->words);
}

bool trace_ring_take(struct trace_ring *ring, uintptr_t address, size_t size, size_t alignment) {
  if (LIKELY(size <= UINT16_MAX && alignment == 1))
    return note(ring, word_of(TRACE_TAKE, (uint64_t)size << TRACE_ADDRESS_BITS | place_of(address)),
                0, 1);
  uint64_t power = lowest_bit(alignment);
  return note(ring, word_of(TRACE_TAKE_LARGE, place_of(address)),
              power << TRACE_ALIGNMENT_SHIFT | size, 2);
}

bool trace_ring_free(struct trace_ring *ring, uintptr_t address) {
  return note(ring, word_of(TRACE_FREE, place_of(address)), 0, 1);
}

bool trace_ring_resize(struct trace_ring *ring, uintptr_t address, size_t size) {
  return note(ring, word_of(TRACE_RESIZE, place_of(address)), size, 2);
}
