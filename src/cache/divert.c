#include "cache/divert.h"

#include "cache/class_figures.h"
#include "cache/packing.h"
#include "config/options.h"
#include "guard/guarded.h"
#include "profile/control.h"
#include "profile/trace_ring.h"

bool divert_wants_ticks(void) { return options.guard && guarded_is_ready(); }

void divert_tick(void) {
  static struct owner *last; /* of the helper thread alone */
  last = last && last->next_of_all ? last->next_of_all : owners_first();
  if (last && load_relaxed(&last->state) == OWNER_RUNNING)
    heap_divert(heap_of_owner(last), HEAP_POKE);
}

/* ---- all mallocs ----------------------------------------------------------------------------- */

/* While a profile is on, a thread looks at the control record again after this many bytes. */
enum { LOOK_BYTES = 512 << 10 };

/* The rest of the lots was counted, and will not be handed out. */
static void drop_lots(struct heap *heap) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct magazine *magazine = &heap->magazines[class];
    unsigned passes = magazine->passes;
    magazine->passes = 0;
    magazine->is_sample_due = false;
    if (passes) class_figures_add(heap, class, profiled_blocks, (uint64_t)0 - passes);
  }
}

/* The reasons are set before the magazines are armed, and cleared after: a forked child may find a
 * thread cut off in between. */
static void arm(struct heap *heap, unsigned reasons, bool is_on) {
  unsigned before = load_relaxed(&heap->armed);
  unsigned after = is_on ? before | reasons : before & ~reasons;
  store_relaxed(&heap->armed, (uint8_t)(before | after));
  keep_store_order();
  if (before & ARMED_BY_PROFILE) drop_lots(heap);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    packing_end(&heap->magazines[class]);
    magazine_arm(&heap->magazines[class], after);
  }
  keep_store_order();
  store_relaxed(&heap->armed, (uint8_t)after);
}

void divert_use(struct heap *heap, struct hak_heap *used) {
  bool is_change = !heap->used != !used;
  if (!used) heap->used = NULL;
  keep_store_order();
  if (is_change) arm(heap, ARMED_BY_USE, used);
  heap->used = used;
}

/* The thread's next free attends, and gives the heap its resting tag. */
void divert_move(struct heap *heap, bool is_moving) {
  if (heap->is_moving == is_moving) return;
  heap->is_moving = is_moving;
  arm(heap, ARMED_BY_MOVING, is_moving);
  heap_divert(heap, HEAP_POKE);
}

/* With a lease that has run out no tool reads it. */
static void rest_ring(struct trace_ring *ring) {
  trace_ring_rest(ring, load_relaxed(&profile_control.trace_lease_ms));
}

void divert_disarm(struct heap *heap) {
  heap->is_moving = false;
  if (load_relaxed(&heap->armed)) {
    heap->used = NULL;
    keep_store_order();
    arm(heap, ARMED_BY_ANY, false);
    heap_set_tag(heap);
  }
  if (heap->ring && !profile_wants_trace(os_now_coarse_ms())) rest_ring(heap->ring);
  sampler_stop(&heap->sampler);
  heap->sampler.seen_word = 0;
  store_relaxed(&heap->sampler.generation, 0);
}

static void follow_trace(struct heap *heap, bool is_on, uint64_t word) {
  if (is_on && !heap->ring) show(heap, ring, trace_ring_make());
  if (is_on && (!heap->ring || !trace_ring_begin(heap->ring, thread_number())))
    return; /* without memory */
  arm(heap, ARMED_BY_TRACE, is_on);
  /* seq: as in sampling_attend; a poke that has come with a later change is undone here, and done
   * again. */
  exchange_seq(&heap->tag, heap_resting_tag(heap));
  if (load_seq(&profile_control.word) != word) heap_divert(heap, HEAP_POKE);
}

/* After a trace: the ring of this thread, and those of threads that have ended. */
static void rest_rings(struct heap *self) {
  if (LIKELY(trace_rings_rest())) return;
  if (self->ring) rest_ring(self->ring);
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    if (load_relaxed(&owner->state) != OWNER_PARKED || !latch_try(owner)) continue;
    struct heap *heap = heap_of_owner(owner);
    if (load_relaxed(&owner->state) == OWNER_PARKED && heap->ring) rest_ring(heap->ring);
    latch_give(owner);
  }
}

void divert_look(struct heap *heap) {
  struct sampler *sampler = &heap->sampler;
  /* acquire: the rest of the record, which was written before its generation. */
  uint64_t word = load_acquire(&profile_control.word);
  uint64_t now_ms = os_now_coarse_ms();
  bool is_on = profile_look(now_ms);
  bool is_traced = profile_wants_trace(now_ms);
  sampler->seen_word = word;
  if (is_traced != heap_is_armed_by(heap, ARMED_BY_TRACE)) follow_trace(heap, is_traced, word);
  if (!is_traced) rest_rings(heap);
  if (is_on) profile_adapt(now_ms);
  if (is_on != heap_is_armed_by(heap, ARMED_BY_PROFILE)) {
    if (is_on)
      sampler_draw(sampler);
    else
      sampler_stop(sampler);
    arm(heap, ARMED_BY_PROFILE, is_on);
  } else if (is_on && sampler_follow(sampler)) {
    drop_lots(heap);
  }
  sampler->unlooked = LOOK_BYTES;
  store_relaxed(&sampler->generation, profile_generation_of(word));
}

/* A heap without a thread looks when it gets one. */
void divert_all(void) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    uint32_t state = load_relaxed(&owner->state);
    if (state == OWNER_RUNNING || state == OWNER_DORMANT)
      heap_divert(heap_of_owner(owner), HEAP_POKE);
  }
}
