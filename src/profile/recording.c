#include "profile/recording.h"

#include "base/probe.h"
#include "map/window.h"
#include "os/lock.h"
#include "profile/control.h"
#include "profile/lives.h"
#include "profile/poisson.h"
#include "profile/sites.h"
#include "stack/unwind.h"
#include "stack/unwind_python.h"

/* ---- where tracers can see samples: USDT probes as OpenTelemetry names them
 * ------------------------------------------
 *
 *   otel_memory:alloc(ptr, size, weighted_bytes)     otel_memory:free(ptr)
 *
 * Each is one nop and a note in the file. Their semaphores are in the control record, so that a
 * tracer that raises one switches sampling on: a slow path that compares the record's word sees
 * it. */

_Static_assert(offsetof(struct profile_control, parts) == 0 &&
                   offsetof(struct profile_word, alloc_semaphore) == 0 &&
                   offsetof(struct profile_word, free_semaphore) == 2,
               "the notes below say so");

NOINLINE static void probe_alloc(const void *block, size_t requested_bytes,
                                 uint64_t weighted_bytes) {
  PROBE_3("otel_memory", "alloc", "profile_control", block, requested_bytes, weighted_bytes);
}

NOINLINE static void probe_free(const void *block) {
  PROBE_1("otel_memory", "free", "profile_control+2", block);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* In a slab that a block may be live in: its pages stay, whatever another thread frees. */
static bool is_in_slab(uintptr_t address) {
  uint32_t entry = owner_map_entry(address);
  return map_entry_is_live(entry) && map_slab_class(entry) < SLAB_CLASS_COUNT;
}

static size_t find_python(uintptr_t *words) {
  struct python_recipe recipe = {.code_type = load_relaxed(&profile_control.python_code_type)};
  if (LIKELY(!recipe.code_type)) return 0;
  recipe.thread = load_relaxed(&profile_control.python_thread);
  recipe.frame = load_relaxed(&profile_control.python_frame);
  recipe.code = load_relaxed(&profile_control.python_code);
  recipe.holder = load_relaxed(&profile_control.python_holder);
  return unwind_python(&recipe, is_in_slab, words, PROFILE_PYTHON_WORDS_MAX);
}

static uint32_t find_site(void) {
  uintptr_t frames[PROFILE_DEPTH_MAX + PROFILE_PYTHON_WORDS_MAX];
  bool is_complete = false;
  size_t count = unwind_stack(frames, profile_depth(), &is_complete);
  if (!is_complete) fetch_add_relaxed(&profile_state.incomplete_stacks, 1);
  enum { WHOLE = 6, SHORT = 7, SHORT_WORDS = 4 * PYTHON_FRAME_WORDS };
  size_t python = find_python(frames + count), few = python < SHORT_WORDS ? python : SHORT_WORDS;
  if (python && !sites_have_room(frames, count + python, is_complete, WHOLE)) {
    if (sites_have_room(frames + count, few, false, SHORT))
      return sites_find(frames + count, few, false);
    fetch_add_relaxed(&profile_state.cut_stacks, 1);
    python = 0;
  }
  return sites_find(frames, count + python, is_complete);
}

static bool keep(struct sampler *sampler, const struct recorded_block *recorded) {
  uint32_t site = find_site();
  struct profile_sample sample = {
      .block_bytes = recorded->block_bytes,
      .requested_bytes = recorded->requested_bytes,
      .period_bytes = sampler->period_bytes,
      .born_ns = os_now_ns(), /* the stack takes longer than some lives */
      .site = site,
      .thread_id = thread_number(),
      .class = recorded->class};
  double p = poisson_probability(sample.block_bytes, sample.period_bytes);
  probe_alloc(recorded->block, recorded->requested_bytes,
              (uint64_t)((double)sample.block_bytes / p));
  sites_note_allocated(&sample);
  if (recorded->coins == SAMPLE_THINNED_OUT) return true;
  if (samples_add(recorded->address, &sample, recorded->coins, &sampler->random)) return true;
  fetch_add_relaxed(&profile_state.lost_samples, 1);
  return false;
}

/* The time taken, at most that of a sample: a thread that was preempted, or waited for a page, did
 * not use a processor meanwhile, and R would rise a thousandfold for it on a loaded machine. */
static uint64_t cost_ns(uint64_t began_ns) {
  enum { MOST_NS = 20000 };
  uint64_t elapsed_ns = os_now_ns() - began_ns;
  return elapsed_ns < MOST_NS ? elapsed_ns : MOST_NS;
}

bool recording_add(struct sampler *sampler, const struct recorded_block *recorded) {
  uint64_t began_ns = os_now_ns();
  bool is_kept = keep(sampler, recorded);
  fetch_add_relaxed(&profile_state.samples, 1);
  fetch_add_relaxed(&profile_state.sampling_ns, cost_ns(began_ns));
  profile_adapt(os_now_coarse_ms());
  return is_kept;
}

void recording_lose(void) {
  fetch_add_relaxed(&profile_state.samples, 1);
  fetch_add_relaxed(&profile_state.lost_samples, 1);
}

void recording_remove(uintptr_t address, const void *block) {
  struct profile_sample sample;
  unsigned halvings;
  if (LIKELY(!load_relaxed(&profile_state.live_samples))) return;
  if (!samples_remove(address, &sample, &halvings)) return;
  uint64_t now_ns = os_now_ns();
  uint64_t lived_ns = now_ns > sample.born_ns ? now_ns - sample.born_ns : 0;
  probe_free(block);
  sites_note_freed(&sample, halvings, lived_ns);
  lives_note(&sample, halvings, lived_ns);
}

void recording_resize(uintptr_t address, uint64_t requested_bytes) {
  struct profile_sample before;
  unsigned halvings;
  if (LIKELY(!load_relaxed(&profile_state.live_samples))) return;
  if (samples_resize(address, requested_bytes, &before, &halvings))
    sites_note_resized(&before, halvings, requested_bytes);
}
