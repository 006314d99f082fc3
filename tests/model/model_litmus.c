/* The checker's own tests: small programs whose outcomes are known, and random ones that have the
 * same outcomes with and without the reduction of schedules. */
#include <stdio.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "model.h"

enum { OBJECTS = 3, OPERATIONS = 3, THREADS = 3, PROGRAMS = 60 };

static ATOMIC(uint64_t) x[OBJECTS];
static uint64_t seen[MODEL_THREADS_MAX][OPERATIONS * 2];

static void set_up(void) {}

static uint64_t outcome(void) {
  uint64_t hash = 0;
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++)
    for (unsigned index = 0; index < OPERATIONS * 2; index++)
      hash = mix_bits(hash + seen[thread][index] + 1);
  for (unsigned object = 0; object < OBJECTS; object++)
    hash = mix_bits(hash + load_relaxed(&x[object]) + 1);
  return hash;
}

/* ---- programs known by name ------------------------------------------------------------------ */

/* Store buffering: with seq both cannot read 0. */
static void sb_seq_0(void) { store_seq(&x[0], 1), seen[0][0] = load_seq(&x[1]); }
static void sb_seq_1(void) { store_seq(&x[1], 1), seen[1][0] = load_seq(&x[0]); }
static void sb_release_0(void) { store_release(&x[0], 1), seen[0][0] = load_acquire(&x[1]); }
static void sb_release_1(void) { store_release(&x[1], 1), seen[1][0] = load_acquire(&x[0]); }
/* One of them alone does not help. */
static void sb_mixed_1(void) { store_seq(&x[1], 1), seen[1][0] = load_relaxed(&x[0]); }

/* Message passing: who sees the flag sees the message, by release and acquire. */
static void mp_write(void) { store_relaxed(&x[0], 1), store_release(&x[1], 1); }
static void mp_write_relaxed(void) { store_relaxed(&x[0], 1), store_relaxed(&x[1], 1); }
static void mp_read(void) { seen[1][0] = load_acquire(&x[1]), seen[1][1] = load_relaxed(&x[0]); }

/* Independent reads of independent writes: two readers may differ, but for seq. */
static void write_0(void) { store_release(&x[0], 1); }
static void write_1(void) { store_release(&x[1], 1); }
static void write_seq_0(void) { store_seq(&x[0], 1); }
static void write_seq_1(void) { store_seq(&x[1], 1); }
static void iriw_2(void) { seen[2][0] = load_acquire(&x[0]), seen[2][1] = load_acquire(&x[1]); }
static void iriw_3(void) { seen[3][0] = load_acquire(&x[1]), seen[3][1] = load_acquire(&x[0]); }
static void iriw_seq_2(void) { seen[2][0] = load_seq(&x[0]), seen[2][1] = load_seq(&x[1]); }
static void iriw_seq_3(void) { seen[3][0] = load_seq(&x[1]), seen[3][1] = load_seq(&x[0]); }

/* One object never goes back in time; additions are never lost. */
static void write_twice(void) { store_relaxed(&x[0], 1), store_relaxed(&x[0], 2); }
static void read_twice(void) { seen[1][0] = load_relaxed(&x[0]), seen[1][1] = load_relaxed(&x[0]); }
static void add(void) { seen[model_self()][0] = fetch_add_relaxed(&x[0], 1); }

static const struct {
  const char *name;
  void (*threads[MODEL_THREADS_MAX])(void);
  uint64_t outcomes, in_order; /* by C's memory model; and without old values */
} known[] = {
    {"store buffering, seq", {sb_seq_0, sb_seq_1}, 3, 3},
    {"store buffering, release", {sb_release_0, sb_release_1}, 4, 3},
    {"store buffering, mixed", {sb_seq_0, sb_mixed_1}, 4, 3},
    {"message passing, release", {mp_write, mp_read}, 3, 3},
    {"message passing, relaxed", {mp_write_relaxed, mp_read}, 4, 3},
    {"independent reads", {write_0, write_1, iriw_2, iriw_3}, 16, 15},
    {"independent reads, seq", {write_seq_0, write_seq_1, iriw_seq_2, iriw_seq_3}, 15, 15},
    {"coherence", {write_twice, read_twice}, 6, 6},
    {"additions", {add, add, add}, 6, 6},
};

static bool run(const char *name, void (*const *threads)(void), bool in_order, bool is_unreduced,
                struct model_result *result) {
  struct model_scenario scenario = {.name = name,
                                    .set_up = set_up,
                                    .in_order = in_order,
                                    .outcome = outcome,
                                    .is_unreduced = is_unreduced};
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++)
    scenario.threads[thread] = threads[thread];
  return model_run(&scenario, NULL, result) && !result->is_violated;
}

static bool check_known(uint64_t *schedules) {
  bool all_well = true;
  for (unsigned index = 0; index < sizeof known / sizeof *known; index++) {
    struct model_result any, ordered;
    bool is_well = run(known[index].name, known[index].threads, false, false, &any) &&
                   run(known[index].name, known[index].threads, true, false, &ordered) &&
                   any.outcomes == known[index].outcomes &&
                   ordered.outcomes == known[index].in_order;
    *schedules += any.schedules + ordered.schedules;
    if (!is_well)
      printf("model: litmus: %s: %lu and %lu outcomes\n", known[index].name,
             (unsigned long)any.outcomes, (unsigned long)ordered.outcomes);
    all_well &= is_well;
  }
  return all_well;
}

/* ---- random programs ------------------------------------------------------------------------- */

static uint64_t seed;

static void random_step(unsigned thread, unsigned index) {
  uint64_t draw = mix_bits(seed * 1000 + thread * 100 + index);
  ATOMIC(uint64_t) *object = &x[draw / 64 % OBJECTS];
  uint64_t value = thread * 10 + index + 1, expected = 0;
  uint64_t *result = &seen[thread][index];
  switch (draw % 12) {
    case 0: *result = load_relaxed(object); break;
    case 1: *result = load_acquire(object); break;
    case 2: *result = load_seq(object); break;
    case 3: store_relaxed(object, value); break;
    case 4: store_release(object, value); break;
    case 5: store_seq(object, value); break;
    case 6: *result = exchange_acquire(object, value); break;
    case 7: *result = exchange_seq(object, value); break;
    case 8: *result = fetch_or_relaxed(object, value); break;
    case 9: *result = cas_strong_acq_rel(object, &expected, value); break;
    case 10: *result = cas_strong_seq(object, &expected, value); break;
    default: *result = load_relaxed(object); break;
  }
}

/* A thread that waits for a change: what spinning stands for. */
static void random_wait(unsigned thread) {
  unsigned spins = 0;
  while (load_relaxed(&x[0]) == 0 && load_relaxed(&x[1]) == 0) {
    model_pause();
    spins++;
  }
  seen[thread][OPERATIONS] = spins != 0;
}

static void random_thread(void) {
  unsigned thread = (unsigned)model_self();
  if (thread == THREADS - 1 && seed % 4 == 0) {
    random_wait(thread);
    return;
  }
  for (unsigned index = 0; index < OPERATIONS; index++) random_step(thread, index);
  if (thread == 0 && seed % 4 == 0) store_release(&x[seed / 4 % 2], 77);
}

static bool check_random(uint64_t *schedules) {
  static void (*const threads[MODEL_THREADS_MAX])(void) = {random_thread, random_thread,
                                                           random_thread};
  uint64_t reduced = 0, unreduced = 0;
  for (seed = 1; seed <= PROGRAMS; seed++)
    for (unsigned kind = 0; kind < 2; kind++) {
      struct model_result fast, slow;
      if (!run("random", threads, kind != 0, false, &fast) ||
          !run("random", threads, kind != 0, true, &slow) || fast.outcomes != slow.outcomes ||
          fast.digest != slow.digest) {
        printf("model: litmus: program %lu, %s: %lu outcomes, not %lu\n", (unsigned long)seed,
               kind ? "newest values" : "any values", (unsigned long)fast.outcomes,
               (unsigned long)slow.outcomes);
        return false;
      }
      reduced += fast.schedules;
      unreduced += slow.schedules;
    }
  *schedules += reduced + unreduced;
  printf("model: litmus, random programs: %lu schedules have the outcomes of %lu\n",
         (unsigned long)reduced, (unsigned long)unreduced);
  return true;
}

int main(void) {
  uint64_t schedules = 0;
  bool all_well = check_known(&schedules) & check_random(&schedules);
  printf("model: litmus: %lu schedules\n", (unsigned long)schedules);
  return all_well ? 0 : 1;
}
