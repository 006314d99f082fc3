#include "cache/divert.h"

#include "cache/flush.h"
#include "config/options.h"
#include "guard/guarded.h"

bool divert_wants_ticks(void) { return options.guard && guarded_fits(0, 1); }

void divert_tick(void) {
  static struct owner *last; /* of the helper thread alone */
  last = last && last->next_of_all ? last->next_of_all : owners_first();
  if (last && load_relaxed(&last->state) == OWNER_RUNNING) heap_divert(heap_of_owner(last));
}

void divert_end(struct heap *heap, unsigned class) {
  store_relaxed(&heap->tag, heap->owner.tag);
  if (!options.guard) return;
  if (class < SLAB_CLASS_COUNT) batch_flush_whole(heap, class);
  heap->guard_sampler.countdown = 1;
}
