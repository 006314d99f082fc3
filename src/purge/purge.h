/* purge.h: one round of giving memory back by age, and when the next one is due.
 *
 * Freed memory stays mapped and resident for `decay_ms`, because reuse is cheaper than a page
 * fault; memory unused for that long goes back to the operating system. Rounds are started by slow
 * paths that find one due (or by the helper thread), by one thread at a time. */
#ifndef HAK_PURGE_PURGE_H
#define HAK_PURGE_PURGE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/os.h"

struct purge {
  /* Age: free memory that is at least as old goes. */
  uint32_t now_ms;        /* coarse clock, truncated */
  uint32_t decay_ms;      /* 0: everything free */
  uint32_t page_decay_ms; /* for pages inside slabs */

  /* Amount: more than may be free goes before it is old (reclaim/allowance.h); 0, 0, 0: age alone
   * decides. */
  uint64_t idle_bytes, room_bytes, wanted_bytes;
  size_t early_run_bytes; /* the least neighbouring pages of a slab in use that go early */
  bool give_addresses;    /* unmap instead: under memory pressure, or where commit is charged */

  /* Bounds. */
  uint64_t end_ns;   /* by the clock; 0: none */
  size_t calls_left; /* most system calls that it may still make; 0 from its end on */
  size_t slabs_left; /* most slabs in use that it may still visit */

  /* Result. */
  size_t calls;          /* system calls made */
  uint64_t purged_bytes; /* bytes given back */
  bool work_remains;     /* free memory was left: too young, or a bound was reached */
  bool is_cut;           /* memory of sufficient age was left: a bound was reached */
};

/* A system call, and a look at a slab in use, cost as much as to give these bytes back. */
enum { PURGE_CALL_BYTES = 16 << 10, PURGE_SLAB_BYTES = 512 };

/* The most slabs in use that a step of a round, or any other visit by a thread of the program,
 * scans: 100 ns each and more. */
enum { PURGE_SLABS_A_STEP = 512 };

/* The least time between two rounds, or two questions for the processor time: a few ticks of the
 * coarse clock. */
enum { PURGE_LEAST_MS = 10 };

/* The time of a step on a thread of the program; with the system call begun before its end that is
 * less than a millisecond. Less time would be too little for a program that frees blocks of some
 * MiB and then does nothing. */
#define PURGE_STEP_NS UINT64_C(800000)

/* Purges at any age, without bounds. */
#define PURGE_EVERYTHING ((struct purge){.calls_left = SIZE_MAX, .slabs_left = SIZE_MAX})

INLINE bool purge_may_go_on(const struct purge *purge) { return purge->calls_left; }

/* Whether the purge may leave memory for the next one. (The calls of an unbounded purge are
 * counted, too.) */
INLINE bool purge_is_bounded(const struct purge *purge) {
  return purge->end_ns || purge->calls_left < SIZE_MAX / 2;
}

/* `bytes` shrink with age: three quarters at half of the time, nothing at its end. */
INLINE uint64_t purge_falling(uint64_t bytes, uint32_t age_ms, uint32_t end_ms) {
  if (age_ms >= end_ms) return 0;
  uint64_t part = ((uint64_t)age_ms << 10) / end_ms;
  return bytes - (bytes >> 20) * part * part;
}

/* Memory that was wanted again soon may stay for twice the time. */
enum { PURGE_WANTED_DECAYS = 2 };

INLINE bool purge_is_old(const struct purge *purge, uint32_t age_ms, uint32_t decay_ms) {
  bool is_old = age_ms >= decay_ms;
  if (is_old ? !purge->wanted_bytes : !purge->idle_bytes) return is_old;
  return purge->idle_bytes >=
         purge_falling(purge->room_bytes, age_ms, decay_ms) +
             purge_falling(purge->wanted_bytes, age_ms, decay_ms * PURGE_WANTED_DECAYS);
}

/* True when memory freed at `stamp_ms` is old enough, and may still go; notes memory that stays. */
INLINE bool purge_is_due_after(struct purge *purge, uint32_t stamp_ms, uint32_t decay_ms) {
  uint32_t age_ms = purge->now_ms - stamp_ms;
  if (age_ms > INT32_MAX) age_ms = 0; /* freed since the round began */
  bool is_old = purge_is_old(purge, age_ms, decay_ms);
  if (is_old && purge_may_go_on(purge)) return true;
  purge->work_remains = true;
  purge->is_cut |= is_old;
  return false;
}
/* By the round's own age. */
INLINE bool purge_is_due(struct purge *purge, uint32_t stamp_ms) {
  return purge_is_due_after(purge, stamp_ms, purge->decay_ms);
}

/* One system call for the round; it may be refused. */
INLINE void purge_note_call(struct purge *purge) {
  purge->calls++;
  if (purge->calls_left) purge->calls_left--;
}

/* Call after the system calls: their time depends on how many of these bytes are resident. */
INLINE void purge_account(struct purge *purge, size_t bytes) {
  purge->purged_bytes += bytes;
  purge->idle_bytes -= bytes < purge->idle_bytes ? bytes : purge->idle_bytes;
  if (purge->end_ns && os_now_ns() >= purge->end_ns) purge->calls_left = 0;
}

/* Whether there is memory to give back. WANTED: a thread has freed memory into the pool since the
 * last round found nothing left; ARMED: the time of the next round has been set since. */
enum { PURGE_NONE, PURGE_WANTED, PURGE_ARMED };
extern ATOMIC(uint32_t) purge_state;
/* The helper thread runs: rounds by age are left to it. */
extern ATOMIC(bool) purge_has_helper;
/* How the helper thread rests (reclaim/helper.c). */
enum purge_rest { PURGE_REST_NONE, PURGE_REST_UNTIL_WANTED, PURGE_REST_FOR_A_TIME };
extern ATOMIC(uint32_t) purge_helper_waits; /* enum purge_rest */

INLINE void purge_wake(void) {
  store_relaxed(&purge_helper_waits, PURGE_REST_NONE); /* the kernel compares once more */
  os_wake_one(&purge_helper_waits);
}

/* After the state was changed from NONE (seq): pairs with `rest` in reclaim/helper.c, which
 * announces itself before it reads the state. */
INLINE void purge_wake_helper(void) {
  if (load_seq(&purge_helper_waits) == PURGE_REST_UNTIL_WANTED) purge_wake();
}

INLINE void purge_want(void) {
  uint32_t none = PURGE_NONE;
  /* The load keeps the shared line clean. seq: after the freed memory can be found; pairs with the
   * store of NONE in run_round, which comes before it looks. Relaxed, aarch64 would read the state
   * first, and a last free might wait for the next one. */
  if (LIKELY(load_seq(&purge_state) != PURGE_NONE)) return;
  if (cas_strong_seq(&purge_state, &none, PURGE_WANTED)) purge_wake_helper();
}

#endif
