#include "heap/guard_sampler.h"

#include "base/bits.h"
#include "guard/guarded.h"
#include "heap/batch.h"

/* ---- the ticker ---------------------------------------------------------------------------------------- */

bool guard_sampler_wants_ticks(void) { return options.guard && guarded_fits(0, 1); }

void guard_sampler_tick(void) {
  static struct owner *last; /* of the helper thread alone */
  last = last && last->next_of_all ? last->next_of_all : owners_first();
  if (last && load_relaxed(&last->state) == OWNER_RUNNING) heap_divert(heap_of_owner(last));
}

void guard_sampler_reopen(struct heap *heap, unsigned class) {
  store_relaxed(&heap->tag_for_ticker, heap->owner.tag);
  if (!options.guard) return;
  batch_flush_whole(heap, class);
  heap->guard_sampler.countdown = 1;
}

/* ---- the countdown ----------------------------------------------------------------------------------------- */

/* 1 to 2 * rate - 1, all equally likely: `rate` in the mean. */
static uint64_t next_distance(struct guard_sampler *guard_sampler) {
  return 1 + (random_next(&guard_sampler->random) >> 16) % (2 * options.guard_rate - 1);
}

/* Not before that time: bounds what a program pays whose requests miss all the time. */
static ATOMIC(uint64_t) next_sample_ms;

/* Twice as long for each tenth of the slots in use: blocks that live for ever would soon have them all. */
static uint64_t gap_ms(void) { return options.guard_gap_ms << guarded_tenths_used(); }

static bool gap_has_passed(void) {
  if (options.guard_rate == 1 || !options.guard_gap_ms) return true;
  uint64_t now_ms = os_now_coarse_ms(), next_ms = load_relaxed(&next_sample_ms);
  /* acq_rel: orders nothing; one of the threads that come at once goes on. */
  return now_ms >= next_ms && cas_strong_acq_rel(&next_sample_ms, &next_ms, now_ms + gap_ms());
}

static bool is_due(struct guard_sampler *guard_sampler) {
  if (UNLIKELY(!guard_sampler->random)) {
    guard_sampler->random = os_random() | 1;
    guard_sampler->countdown = next_distance(guard_sampler);
  }
  if (LIKELY(--guard_sampler->countdown)) return false;
  bool is_now = gap_has_passed();
  guard_sampler->countdown = is_now ? next_distance(guard_sampler) : 1;
  return is_now;
}

void *guard_sampler_take_slow(struct heap *heap, const struct allocation *allocation) {
  struct guard_sampler *guard_sampler = &heap->guard_sampler;
  if (!guarded_fits(allocation->size, allocation->alignment)) return NULL;
  /* What a call stack is made with may allocate. */
  if (guard_sampler->is_sampling || !is_due(guard_sampler)) return NULL;
  guard_sampler->is_sampling = true;
  bool is_at_end = random_next(&guard_sampler->random) >> 63;
  void *block = (void *)guarded_take(allocation->size, allocation->alignment, is_at_end);
  guard_sampler->is_sampling = false;
  if (block) count(&heap->owner.counters, COUNT_guarded_blocks);
  return block;
}
