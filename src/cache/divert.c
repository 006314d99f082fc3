#include "cache/divert.h"

#include "cache/class_figures.h"
#include "cache/flush.h"
#include "config/options.h"
#include "guard/guarded.h"
#include "profile/control.h"
#include "profile/sampled_slabs.h"

bool divert_wants_ticks(void) { return options.guard && guarded_fits(0, 1); }

void divert_tick(void) {
  static struct owner *last; /* of the helper thread alone */
  last = last && last->next_of_all ? last->next_of_all : owners_first();
  if (last && load_relaxed(&last->state) == OWNER_RUNNING) heap_divert(heap_of_owner(last));
}

/* ---- all mallocs ---------------------------------------------------------------------------------------------- */

/* While a profile is on, a thread looks at the control record again after this many bytes. */
enum { LOOK_BYTES = 512 << 10 };

/* The rest of the lots was counted, and will not be handed out. */
static void drop_lots(struct heap *heap) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct magazine *magazine = &heap->magazines[class];
    unsigned passes = magazine->passes;
    magazine->passes = 0;
    magazine->is_sample_due = false;
    if (passes) class_figures_profiled(heap, class, -(int64_t)passes);
  }
}

/* Sets the heap's flag before arming its magazines, and clears it after disarming them: a forked child may find a thread cut off in
 * between. */
static void arm(struct heap *heap, bool is_armed) {
  if (is_armed) heap->is_armed = true;
  keep_store_order();
  if (load_relaxed(&heap->sampler.is_armed)) drop_lots(heap);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    magazine_arm(&heap->magazines[class], is_armed);
  keep_store_order();
  if (!is_armed) heap->is_armed = false;
}

/* As arm, with the sampler's own flag, which is read from outside. */
static void arm_for_profile(struct heap *heap, bool is_on) {
  if (is_on) store_relaxed(&heap->sampler.is_armed, true);
  keep_store_order();
  arm(heap, is_on || heap->used);
  keep_store_order();
  if (!is_on) store_relaxed(&heap->sampler.is_armed, false);
}

void divert_use(struct heap *heap, struct hak_heap *used) {
  bool was_used = heap->used;
  if (used) heap->is_armed = true;
  keep_store_order();
  heap->used = used;
  keep_store_order();
  if (was_used != (used != NULL)) arm(heap, used || load_relaxed(&heap->sampler.is_armed));
}

void divert_disarm(struct heap *heap) {
  if (heap->is_armed) {
    heap->used = NULL;
    arm_for_profile(heap, false);
  }
  sampler_stop(&heap->sampler);
  heap->sampler.seen_word = 0;
  store_relaxed(&heap->sampler.generation, 0);
}

void divert_look(struct heap *heap) {
  struct sampler *sampler = &heap->sampler;
  /* acquire: the rest of the record, which was written before its generation. */
  uint64_t word = load_acquire(&profile_control.word);
  uint64_t now_ms = os_now_coarse_ms();
  bool is_on = profile_look(now_ms);
  sampler->seen_word = word;
  if (is_on) profile_adapt(now_ms);
  if (is_on != load_relaxed(&sampler->is_armed)) {
    if (is_on)
      sampler_draw(sampler);
    else
      sampler_stop(sampler);
    arm_for_profile(heap, is_on);
  } else if (is_on && sampler_follow(sampler)) {
    drop_lots(heap);
  }
  sampler->unlooked = LOOK_BYTES;
  if (!is_on) sampled_slabs_release(&heap->owner.counters);
  store_relaxed(&sampler->generation, profile_generation_of(word));
}

/* A heap without a thread looks when it gets one. */
void divert_all(void) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    uint32_t state = load_relaxed(&owner->state);
    if (state == OWNER_RUNNING || state == OWNER_DORMANT) heap_divert(heap_of_owner(owner));
  }
}

/* ---- tags ------------------------------------------------------------------------------------------------------ */

void divert_end(struct heap *heap, unsigned class) {
  /* seq: before the control record is read, or a poke that comes with a change in between would be undone unseen. */
  exchange_seq(&heap->tag, heap->owner.number << MAP_TAG_SHIFT);
  if (sampler_is_wanted(&heap->sampler)) divert_look(heap);
  if (!options.guard) return;
  if (class < SLAB_CLASS_COUNT) batch_flush_whole(heap, class);
  heap->guard_sampler.countdown = 1;
}
