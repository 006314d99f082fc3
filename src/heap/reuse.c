#include "heap/reuse.h"

enum { LEASE_FIRST = 32, LEASE_MIN = 64, STREAK_MAX = 9 };

static bool is_tiny(unsigned class) { return class < TINY_CLASS_COUNT; }

static void grant(struct reuse *reuse, unsigned lease) {
  reuse->turns |= !reuse->lease;
  reuse->lease = reuse->granted = (uint16_t)lease;
}

/* Not before: the first blocks that a thread frees may be the starter heap's, which others wait for. */
void reuse_note_full_remote_buffer(struct heap *heap) {
  for (unsigned class = 0; class < TINY_CLASS_COUNT; class ++)
    if (heap->magazines[class].last_event == MAGAZINE_IDLE && !heap->reuse[class].lease)
      grant(&heap->reuse[class], LEASE_FIRST);
}

static bool is_untouched(const struct magazine *magazine, const struct reuse *reuse) {
  return reuse->slot < magazine_capacity(magazine) && /* it may have shrunk */
         magazine->base[reuse->slot] == reuse->watched;
}

/* The longer nothing else is seen, the longer it is trusted. */
void reuse_judge(struct heap *heap, unsigned class) {
  if (!is_tiny(class) || !heap->reuse[class].watched) return;
  struct reuse *reuse = &heap->reuse[class];
  if (!is_untouched(&heap->magazines[class], reuse)) {
    reuse->streak = 0;
    return;
  }
  grant(reuse, (unsigned)LEASE_MIN << reuse->streak);
  if (reuse->streak < STREAK_MAX) reuse->streak++;
}

/* Blocks that are reused are pushed too: nothing is to be learnt while they may be. */
void reuse_watch(struct heap *heap, unsigned class) {
  if (!is_tiny(class)) return;
  struct reuse *reuse = &heap->reuse[class];
  reuse->slot = (uint16_t)(magazine_count(&heap->magazines[class]) / 2);
  reuse->watched = reuse->lease ? NULL : heap->magazines[class].base[reuse->slot];
}

/* A thread that only frees others' blocks reuses nothing, and its magazine is the better remote-free buffer: all that a
 * flush finds was pushed under the lease.  It lasts until the next flush, though the magazine may grow. */
void reuse_note_flush(struct heap *heap, unsigned class) {
  if (!is_tiny(class) || heap->magazines[class].last_event == MAGAZINE_REFILLED) return;
  struct reuse *reuse = &heap->reuse[class];
  unsigned capacity = magazine_capacity(&heap->magazines[class]);
  if ((unsigned)(reuse->granted - reuse->lease) * 2 < capacity) return;
  grant(reuse, reuse->lease > capacity * 2 ? reuse->lease : capacity * 2);
}
