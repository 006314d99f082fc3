#include "cache/reuse.h"

enum { LEASE_FIRST = 32, LEASE_MIN = 64, STREAK_MAX = 9 };
_Static_assert(LEASE_MIN << STREAK_MAX <= UINT16_MAX, "the longest lease fits its field");

static void grant(struct reuse *reuse, unsigned lease) {
  reuse->turns |= !reuse->lease;
  reuse->lease = reuse->granted = (uint16_t)lease;
}

/* Not before the buffer is full: the first blocks that a thread frees may be the starter heap's, which other threads need back. */
RESIDENT void reuse_note_full_buffer(struct reuse reuse[static TINY_CLASS_COUNT],
                                     const struct magazine magazines[static TINY_CLASS_COUNT]) {
  for (unsigned class = 0; class < TINY_CLASS_COUNT; class ++)
    if (magazines[class].last_event == MAGAZINE_IDLE && !reuse[class].lease)
      grant(&reuse[class], LEASE_FIRST);
}

static bool is_untouched(const struct reuse *reuse, const struct magazine *magazine) {
  return reuse->slot < magazine_capacity(magazine) && /* it may have shrunk */
         magazine_base(magazine)[reuse->slot] == reuse->watched;
}

/* The lease doubles while the slot is found untouched. */
RESIDENT void reuse_judge(struct reuse *reuse, const struct magazine *magazine) {
  if (!reuse->watched) return;
  if (!is_untouched(reuse, magazine)) {
    reuse->streak = 0;
    return;
  }
  grant(reuse, (unsigned)LEASE_MIN << reuse->streak);
  if (reuse->streak < STREAK_MAX) reuse->streak++;
}

/* Blocks that are reused are pushed too: the slot shows nothing during a lease. */
RESIDENT void reuse_watch(struct reuse *reuse, const struct magazine *magazine) {
  reuse->slot = (uint16_t)(magazine_count(magazine) / 2);
  reuse->watched = reuse->lease ? NULL : magazine_base(magazine)[reuse->slot];
}

/* A thread that only frees others' blocks reuses nothing, and its magazine serves better than a remote-free buffer: all blocks that a
 * flush finds were pushed under the lease. The lease lasts until the next flush, though the magazine may grow. */
RESIDENT void reuse_note_flush(struct reuse *reuse, const struct magazine *magazine) {
  if (magazine->last_event == MAGAZINE_REFILLED) return;
  unsigned capacity = magazine_capacity(magazine);
  if ((unsigned)(reuse->granted - reuse->lease) * 2 < capacity) return;
  grant(reuse, reuse->lease > capacity * 2 ? reuse->lease : capacity * 2);
}
