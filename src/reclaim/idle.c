#include "reclaim/idle.h"

#include "cache/divert.h"
#include "config/options.h"
#include "slab/adopt.h"

/* Under the lock of rounds. */
static struct owner *next_owner; /* NULL: the first one */
static uint64_t answers_until_ms;

enum { ANSWER_DECAYS = 2 };

/* A thread that finds all it wants in its magazines comes to no slow path, and what it does not want lies there as well.
 * It is called once it is dormant; one that sleeps answers when it frees again. */
static void call_if_dormant(const struct heap *self, struct heap *heap, const struct purge *purge,
                            uint64_t now_ms) {
  if (heap == self || load_relaxed(&heap->owner.state) != OWNER_DORMANT) return;
  if (heap_is_diverted(heap) ||
      load_relaxed(&heap->owner.slow_paths) < load_relaxed(&heap->settled))
    return;
  store_relaxed(&heap->is_called, true); /* relaxed: seen late, it is called in vain */
  heap_divert(heap);
  answers_until_ms = now_ms + ANSWER_DECAYS * (uint64_t)purge->decay_ms;
}

/* Others' frees may have come to owners that were visited before: so a round in parts is followed by one more. */
void idle_release(const struct heap *self, struct purge *purge, size_t owners_max) {
  uint64_t now_ns = os_now_ns(), now_ms = os_now_coarse_ms();
  struct owner *owner = next_owner ? next_owner : owners_first();
  purge->work_remains |= next_owner != NULL;
  for (; owner && owners_max; owner = owner->next_of_all, owners_max--) {
    if (!owner_sweep(owner, now_ns, purge) && owner != &self->owner) purge->work_remains = true;
    if (!options.harden)
      call_if_dormant(self, heap_of_owner(owner), purge, now_ms); /* else no magazines */
  }
  next_owner = owner;
  if (owner) purge->work_remains = purge->is_cut = true;
  /* What they free is to go back as well, and the thread that answers may come to no other slow path. */
  purge->work_remains |= now_ms < answers_until_ms;
}

void idle_after_fork(void) { next_owner = NULL; }
