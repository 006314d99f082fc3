/* trace_ring.h: a thread's last allocations and frees, for a tool that reads them while the program runs.
 *
 *   the thread   words, then `written`        the tool   `written`, the words, then `read`
 *
 * A word is an operation in its lowest 3 bits, and what it says; TAKE_LARGE (which has any alignment) and RESIZE have a second one:
 *
 *   TIME     of the events after it, in ticks (cpu_ticks)         CLOCK   CLOCK_MONOTONIC in nanoseconds, at the last TIME
 *   TAKE     address / 8 in 45 bits, bytes in 16                  TAKE_LARGE   address / 8; log2 of the alignment << 56 | bytes
 *   FREE     address / 8                                          RESIZE  address / 8; bytes: a block that stays where it is;
 *                                                                       0: realloc is to move it, by a TAKE and a FREE that follow
 *   THREAD   the ring's thread from here on                       LOST    the number of events that had no room
 *
 * Law: nothing between `read` and `written` is overwritten: without room events are counted, and the number is written once there is. */
#ifndef HAK_PROFILE_TRACE_RING_H
#define HAK_PROFILE_TRACE_RING_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"

enum trace_operation {
  TRACE_TIME,
  TRACE_CLOCK,
  TRACE_TAKE,
  TRACE_TAKE_LARGE,
  TRACE_FREE,
  TRACE_RESIZE,
  TRACE_THREAD,
  TRACE_LOST
};
enum { TRACE_OPERATION_BITS = 3, TRACE_ADDRESS_BITS = 45, TRACE_ALIGNMENT_SHIFT = 56 };

enum { TRACE_RING_WORDS = 1 << 16 };

struct trace_ring {
  ATOMIC(uint64_t) written; /* words so far */
  uint64_t room;            /* there is some up to this word, and nothing to say first */
  uint64_t time, clock;     /* ticks of the last TIME and CLOCK */
  uint64_t exact_until;     /* the word up to which each event since TIME reads the clock */
  uint64_t lost;            /* events, since there was no room */
  uint64_t thread_id;       /* the next THREAD; 0: it was written */
  size_t purged_bytes;      /* of the words, while nothing is recorded */
  CACHE_ALIGNED ATOMIC(uint64_t) read; /* words, by the tool */
  ATOMIC(uint64_t) words[TRACE_RING_WORDS];
};

/* NULL without memory. Rings are never freed. */
struct trace_ring *trace_ring_make(void);
/* Begins the events of a thread. False without memory. */
bool trace_ring_begin(struct trace_ring *ring, uint32_t thread_id);
/* Nothing is recorded now: gives the pages of its words back once the tool has read them, or where `is_left` says that none will. */
void trace_ring_rest(struct trace_ring *ring, bool is_left);

/* By the ring's thread. True now and then: the thread is to look whether it is still recorded. */
bool trace_ring_take(struct trace_ring *ring, uintptr_t address, size_t size, size_t alignment);
bool trace_ring_resize(struct trace_ring *ring, uintptr_t address, size_t size);

/* ---- the usual event ---------------------------------------------------------------------------------------------- */

/* Events of 1 to 3 us have one TIME. */
enum { TRACE_TIME_SHIFT = CPU_TICKS_SHIFT, TRACE_EXACT_WORDS = 8, TRACE_WORDS_A_CLOCK = 4 };

INLINE uint64_t trace_word(enum trace_operation operation, uint64_t what) {
  return what << TRACE_OPERATION_BITS | operation;
}
INLINE bool trace_has_second(uint64_t word) {
  uint64_t operation = word & low_bits(TRACE_OPERATION_BITS);
  return operation == TRACE_TAKE_LARGE || operation == TRACE_RESIZE;
}
INLINE uint64_t trace_place(uintptr_t address) {
  return ((uint64_t)address >> 3) & low_bits(TRACE_ADDRESS_BITS);
}
INLINE uint64_t trace_word_take(uintptr_t address, size_t size) {
  return trace_word(TRACE_TAKE, (uint64_t)size << TRACE_ADDRESS_BITS | trace_place(address));
}
INLINE bool trace_is_now(const struct trace_ring *ring, uint64_t now) {
  return !((now ^ ring->time) >> TRACE_TIME_SHIFT);
}

/* Any event; where it has no room, or another TIME, with the words that come first. `second`: for those that have one. */
bool trace_ring_note(struct trace_ring *ring, uint64_t first, uint64_t second, uint64_t now);

INLINE bool trace_ring_put(struct trace_ring *ring, uint64_t word, uint64_t now) {
  uint64_t at = load_relaxed(&ring->written);
  if (UNLIKELY(!trace_is_now(ring, now) || at >= ring->room))
    return trace_ring_note(ring, word, 0, now);
  store_relaxed(&ring->words[at % TRACE_RING_WORDS], word); /* relaxed: `written` orders it */
  store_release(&ring->written, at + 1); /* the word; pairs with the tool's read */
  return false;
}

INLINE bool trace_ring_free(struct trace_ring *ring, uintptr_t address) {
  return trace_ring_put(ring, trace_word(TRACE_FREE, trace_place(address)), cpu_ticks());
}

/* A small block of the thread's magazine. While many events share a TIME, three of four such blocks take it without reading the clock,
 * which costs as much as all else: after a pause they seem to come too early, but not before the block's last free, which this thread
 * or its last refill saw. */
INLINE bool trace_ring_take_cached(struct trace_ring *ring, uintptr_t address, size_t size) {
  uint64_t at = load_relaxed(&ring->written);
  bool is_exact = at < ring->exact_until || at % TRACE_WORDS_A_CLOCK == 0;
  return trace_ring_put(ring, trace_word_take(address, size), is_exact ? cpu_ticks() : ring->time);
}

#endif
