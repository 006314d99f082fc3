/* trace_ring.h: a thread's last allocations and frees, for a tool that reads them while the program
 * runs.
 *
 *   the thread   words, then `written`        the tool   `written`, the words, then `read`
 *
 * A word has 32 bits: an operation in its lowest 3, and what it says. Those before an event tell
 * what is not as it was:
 *
 *   CLOCK    eight words of 29 bits, lowest bits first: three of cpu_ticks, three of
 *            CLOCK_MONOTONIC in nanoseconds, the number of events that had no room, and the
 *            thread
 *   TIME     of the events after it, in ticks since the last CLOCK
 *   REGION   the addresses' bits from 32 on
 *   SIZE     of the next event: 27 bits of the bytes, of the bytes above them, or log2 of the
 *            alignment, as the 2 bits above say
 *   TAKE     bits 3 to 31 of the address. Without a SIZE the bytes are those of the last TAKE
 *            with the same bits 16 to 21: of the same slab, mostly
 *   FREE     the address
 *   RESIZE   the address: of a block that stays where it is; with a SIZE of 0: realloc is to move
 *            it, by a TAKE and a FREE that follow
 *
 * Law: nothing between `read` and `written` is overwritten: without room events are counted, and
 * the number is written once there is. */
#ifndef HAK_PROFILE_TRACE_RING_H
#define HAK_PROFILE_TRACE_RING_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"

enum trace_operation {
  TRACE_TIME,
  TRACE_CLOCK,
  TRACE_TAKE,
  TRACE_REGION,
  TRACE_FREE,
  TRACE_RESIZE,
  TRACE_SIZE
};
enum {
  TRACE_OPERATION_BITS = 3,
  TRACE_CLOCK_WORDS = 8,
  TRACE_SIZE_BITS = 27,
  TRACE_RING_WORDS = 1 << 17,
  TRACE_SLABS = 64
};

struct trace_ring {
  ATOMIC(uint64_t) written; /* words so far */
  uint64_t room;            /* there is some up to this word */
  uint64_t time, clock;     /* ticks of the last TIME and CLOCK */
  uint64_t exact_until;     /* the word up to which each event since TIME reads the clock */
  uint64_t looked;          /* ticks when a look was due last */
  uint64_t lost;            /* events, since there was no room */
  uint32_t thread_id;
  uint32_t region;                     /* of the last event */
  uint64_t sizes[TRACE_SLABS];         /* of the last TAKE of a slab */
  size_t purged_bytes;                 /* of the words, while nothing is recorded */
  CACHE_ALIGNED ATOMIC(uint64_t) read; /* words, by the tool */
  ATOMIC(uint32_t) words[TRACE_RING_WORDS];
};

/* NULL without memory. Rings are never freed. */
struct trace_ring *trace_ring_make(void);
/* Begins the events of a thread. False without memory. */
bool trace_ring_begin(struct trace_ring *ring, uint32_t thread_id);
/* Nothing is recorded now: gives the pages of its words back once the tool has read them, or where
 * `is_left` says that none will. */
void trace_ring_rest(struct trace_ring *ring, bool is_left);
/* Whether all have. */
bool trace_rings_rest(void);

/* By the ring's thread. True now and then: the thread is to look whether it is still recorded. */
bool trace_ring_take(struct trace_ring *ring, uintptr_t address, size_t size, size_t alignment);
bool trace_ring_resize(struct trace_ring *ring, uintptr_t address, size_t size);

/* ---- the usual event ------------------------------------------------------------------------- */

/* Events of 1 to 3 us have one TIME. */
enum { TRACE_TIME_SHIFT = CPU_TICKS_SHIFT, TRACE_EXACT_WORDS = 8, TRACE_WORDS_A_CLOCK = 4 };

INLINE uint64_t *trace_size_of_slab(struct trace_ring *ring, uintptr_t address) {
  return &ring->sizes[(address >> 16) % TRACE_SLABS];
}
INLINE bool trace_is_now(const struct trace_ring *ring, uint64_t now) {
  return !((now ^ ring->time) >> TRACE_TIME_SHIFT);
}

/* Any event, with the words that come first. `power`: log2 of its alignment. */
bool trace_ring_note(struct trace_ring *ring, enum trace_operation operation, uintptr_t address,
                     size_t size, unsigned power, uint64_t now);

INLINE bool trace_ring_put(struct trace_ring *ring, enum trace_operation operation,
                           uintptr_t address, size_t size, uint64_t now) {
  uint64_t at = load_relaxed(&ring->written), *last = trace_size_of_slab(ring, address);
  if (UNLIKELY(!trace_is_now(ring, now) || at >= ring->room || address >> 32 != ring->region ||
               size >> TRACE_SIZE_BITS))
    return trace_ring_note(ring, operation, address, size, 0, now);
  if (operation == TRACE_TAKE && *last != size) {
    *last = size;
    /* relaxed, as the next one: `written` orders it */
    store_relaxed(&ring->words[at++ % TRACE_RING_WORDS],
                  (uint32_t)size << TRACE_OPERATION_BITS | TRACE_SIZE);
  }
  store_relaxed(&ring->words[at % TRACE_RING_WORDS], (uint32_t)address | operation);
  store_release(&ring->written, at + 1); /* the words; pairs with the tool's read */
  return false;
}

INLINE bool trace_ring_free(struct trace_ring *ring, uintptr_t address) {
  return trace_ring_put(ring, TRACE_FREE, address, 0, cpu_ticks());
}

/* A small block of the thread's magazine. While many events share a TIME, three of four such
 * blocks take it without reading the clock, which costs as much as all else: after a pause they
 * seem to come too early, but not before the block's last free, which this thread or its last
 * refill saw. */
INLINE bool trace_ring_take_cached(struct trace_ring *ring, uintptr_t address, size_t size) {
  uint64_t at = load_relaxed(&ring->written);
  bool is_exact = at < ring->exact_until || at % TRACE_WORDS_A_CLOCK == 0;
  return trace_ring_put(ring, TRACE_TAKE, address, size, is_exact ? cpu_ticks() : ring->time);
}

#endif
