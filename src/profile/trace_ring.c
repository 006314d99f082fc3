#include "profile/trace_ring.h"

#include "map/metadata.h"
#include "os/os.h"

/* A CLOCK comes, and a look is due, after 20 to 40 ms. */
enum { CLOCK_SHIFT = CPU_TICKS_SHIFT + 14 };
/* LOST, THREAD, TIME, CLOCK, and an event of two words. */
enum { WORDS_AT_ONCE = 6 };

struct trace_ring *trace_ring_make(void) {
  return metadata_allocate(sizeof(struct trace_ring));
}

/* relaxed: `written` orders them for the tool. */
INLINE void put(struct trace_ring *ring, uint64_t *at, uint64_t word) {
  store_relaxed(&ring->words[(*at)++ % TRACE_RING_WORDS], word);
}

/* Makes room for an event at *at; false when there is none. */
INLINE bool begin(struct trace_ring *ring, uint64_t *at, uint64_t now) {
  *at = load_relaxed(&ring->written);
  /* acquire: the tool has read the words that are overwritten from here on. */
  ring->room = load_acquire(&ring->read) + TRACE_RING_WORDS - WORDS_AT_ONCE;
  if (UNLIKELY(*at > ring->room)) {
    ring->lost++;
    return false;
  }
  if (UNLIKELY(ring->lost)) {
    put(ring, at, trace_word(TRACE_LOST, ring->lost));
    ring->lost = 0;
  }
  if (UNLIKELY(ring->thread_id)) {
    put(ring, at, trace_word(TRACE_THREAD, ring->thread_id));
    ring->thread_id = 0;
  }
  if (!trace_is_now(ring, now)) {
    ring->time = now;
    put(ring, at, trace_word(TRACE_TIME, now));
    ring->exact_until = *at + TRACE_EXACT_WORDS;
  }
  return true;
}

NOINLINE bool trace_ring_note(struct trace_ring *ring, uint64_t first, uint64_t second,
                              uint64_t now) {
  uint64_t at;
  bool is_clock_due = UNLIKELY((now - ring->clock) >> CLOCK_SHIFT);
  if (is_clock_due) ring->clock = now;
  if (UNLIKELY(!begin(ring, &at, now))) return is_clock_due;
  if (is_clock_due) put(ring, &at, trace_word(TRACE_CLOCK, os_now_ns()));
  put(ring, &at, first);
  if (trace_has_second(first)) put(ring, &at, second);
  store_release(&ring->written, at); /* the words before it; pairs with the tool's read */
  return is_clock_due;
}

bool trace_ring_begin(struct trace_ring *ring, uint32_t thread_id) {
  if (ring->purged_bytes && !metadata_take_again(ring->purged_bytes)) return false;
  ring->purged_bytes = 0;
  ring->time = ring->clock = ring->room = 0; /* the next event brings them, and the thread */
  ring->exact_until = UINT64_MAX;
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
  uint64_t now = cpu_ticks();
  if (LIKELY(size <= UINT16_MAX && alignment == 1))
    return trace_ring_put(ring, trace_word_take(address, size), now);
  uint64_t power = lowest_bit(alignment);
  return trace_ring_note(ring, trace_word(TRACE_TAKE_LARGE, trace_place(address)),
                         power << TRACE_ALIGNMENT_SHIFT | size, now);
}

bool trace_ring_resize(struct trace_ring *ring, uintptr_t address, size_t size) {
  return trace_ring_note(ring, trace_word(TRACE_RESIZE, trace_place(address)), size, cpu_ticks());
}
