/* search.c: coroutines, and which of them goes on: see checker.h. */
/* Ubuntu's compilers define it, and a checked longjmp refuses to go to another stack. */
#undef _FORTIFY_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"

/* The second: of one scenario, unless ALL=1.  Every broken variant is found within a third of
 * them. */
enum { OUTCOMES_MAX = 1 << 16, SCHEDULES_QUICK_MAX = 40000 };

struct thread threads[THREADS + 1]; /* the last: the checker itself */
unsigned thread_count;
int current = THREADS;
static _Alignas(64) char stacks[THREADS][STACK_BYTES];

enum phase phase;
struct step steps[STEPS_MAX + 1];
unsigned step_count;
static unsigned replayed; /* so many steps are to be made as they were */
uint64_t run_number, schedules;
static bool is_abandoned;

/* ---- switching ------------------------------------------------------------------------------- */

static char *tls_block;
static size_t tls_bytes;

static int find_tls(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  for (unsigned index = 0; index < info->dlpi_phnum; index++)
    if (info->dlpi_phdr[index].p_type == PT_TLS) {
      tls_block = info->dlpi_tls_data;
      tls_bytes = info->dlpi_phdr[index].p_memsz;
    }
  return 1; /* the program itself comes first */
}

static void thread_main(void) {
  threads[current].body();
  finish_thread();
}

static void switch_to(int to) {
  struct thread *from = &threads[current], *next = &threads[to];
  memcpy(from->tls, tls_block, tls_bytes);
  if (_setjmp(from->where) == 0) {
    current = to;
    memcpy(tls_block, next->tls, tls_bytes);
    if (next->is_started) _longjmp(next->where, 1);
    next->is_started = true;
    setcontext(&next->start);
  }
}

/* A check runs on the process's own: to undo what it wrote there would be to change its callers'
 * frames. */
bool is_on_a_stack(const void *address) {
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  if (phase == CHECKING && (uintptr_t)address - frame < STACK_BYTES) return true;
  return (uintptr_t)address - (uintptr_t)stacks < sizeof stacks;
}

bool is_thread_local(const void *address) {
  return (uintptr_t)address - (uintptr_t)tls_block < tls_bytes;
}

/* ---- dependence ------------------------------------------------------------------------------ */

static bool is_read_only(const struct operation *operation) {
  return operation->kind == OP_LOAD || operation->kind == OP_PAUSE;
}

/* A load that may return old values does not mind a store before it. */
static bool is_tolerant(const struct operation *operation) {
  return operation->kind == OP_LOAD && !operation->is_seq && !scenario->in_order;
}

static bool have_common_location(const struct operation *one, const struct operation *other) {
  for (unsigned i = 0; i < one->location_count; i++)
    for (unsigned j = 0; j < other->location_count; j++)
      if (one->locations[i] == other->locations[j]) return true;
  return false;
}

/* Whether `sleeping`, once explored, has to be explored again after `done`. */
static bool wakes(const struct operation *sleeping, const struct operation *done) {
  if (is_read_only(sleeping) && is_read_only(done)) return false;
  if (!is_read_only(sleeping) && is_tolerant(done)) return false;
  return have_common_location(sleeping, done);
}

static bool is_before(unsigned step, const uint32_t *clock) {
  return clock[steps[step].thread] >= step;
}

/* Steps between `first` and `last` that need not come after `first`, and then `last`: whose threads
 * may begin when they are run at the place of `first`. */
static uint8_t initials(unsigned first, unsigned last) {
  uint8_t found = 0, seen = 0;
  for (unsigned number = first + 1; number <= last; number++) {
    const struct step *step = &steps[number];
    if (number != last && is_before(first, step->clock)) continue;
    uint8_t bit = (uint8_t)(1u << step->thread);
    if (seen & bit) continue;
    seen |= bit;
    bool is_initial = true;
    for (unsigned before = first + 1; before < number && is_initial; before++)
      if (!is_before(first, steps[before].clock) && is_before(before, step->clock))
        is_initial = false;
    if (is_initial) found |= bit;
  }
  return found;
}

/* Whether the thread of step `last` could not make it but for step `first`. */
static bool was_enabled_by(unsigned first, unsigned last) {
  const struct operation *operation = &steps[last].operation;
  if (steps[first].enabled >> steps[last].thread & 1) return false;
  if (operation->kind == OP_ASLEEP) return true;
  if (operation->kind != OP_PAUSE) return false;
  for (unsigned index = 0; index < operation->location_count; index++) {
    const struct location *location = &locations[operation->locations[index]];
    for (unsigned value = operation->seen[index] + 1u; value < location->count; value++) {
      unsigned step = message_at(location, value)->step;
      if (step != first && !is_before(first, steps[step].clock)) return false;
    }
  }
  return true;
}

/* Two steps that could come the other way round. */
static void note_race(unsigned first, unsigned last) {
  struct step *place = &steps[first];
  if (was_enabled_by(first, last)) return;
  uint8_t begin = initials(first, last);
  if (begin & (place->backtrack | place->sleep)) return;
  begin &= place->enabled;
  if (begin)
    place->backtrack |= (uint8_t)(begin & -begin);
  else
    place->backtrack |= place->enabled;
}

/* Orders the step that is being made after those that it depends on. */
void note_step(struct step *step, struct thread *thread, const struct message *source) {
  uint32_t candidates[WATCHED_MAX * (THREADS + 1)];
  unsigned count = 0;
  const struct operation *operation = &step->operation;
  bool is_new = step_count >= replayed;
  uint32_t before[THREADS];
  memcpy(before, thread->clock, sizeof before);
  if (is_tolerant(operation)) {
    if (source->step) join_clock(thread->clock, steps[source->step].clock);
  } else {
    for (unsigned index = 0; index < operation->location_count; index++) {
      const struct location *location = &locations[operation->locations[index]];
      if (location->last_write) candidates[count++] = location->last_write;
      for (unsigned other = 0; other < thread_count && !is_read_only(operation); other++)
        if (location->last_read[other]) candidates[count++] = location->last_read[other];
    }
    for (unsigned index = 0; index < count; index++)
      join_clock(thread->clock, steps[candidates[index]].clock);
  }
  thread->clock[step->thread] = step_count;
  memcpy(step->clock, thread->clock, sizeof step->clock);
  for (unsigned index = 0; index < count && is_new; index++) {
    unsigned first = candidates[index];
    bool is_race = steps[first].thread != step->thread && !is_before(first, before);
    for (unsigned other = 0; other < count && is_race; other++)
      if (candidates[other] != first && is_before(first, steps[candidates[other]].clock))
        is_race = false;
    if (is_race) note_race(first, step_count);
  }
  for (unsigned index = 0; index < operation->location_count; index++) {
    struct location *location = &locations[operation->locations[index]];
    if (is_read_only(operation)) {
      location->last_read[step->thread] = step_count;
    } else {
      location->last_write = step_count;
      memset(location->last_read, 0, sizeof location->last_read);
    }
  }
}

/* ---- choosing who goes on -------------------------------------------------------------------- */

static bool is_enabled(const struct thread *thread) {
  if (thread->is_done) return false;
  const struct operation *operation = &thread->pending;
  if (operation->kind == OP_ASLEEP) return thread->is_woken;
  if (operation->kind != OP_PAUSE) return true;
  for (unsigned index = 0; index < operation->location_count; index++)
    if (locations[operation->locations[index]].count - 1 > operation->seen[index]) return true;
  return false;
}

static uint8_t asleep_after(const struct step *step) {
  uint8_t before = (uint8_t)((step->sleep | step->done) & ~(1u << step->thread)), asleep = 0;
  for (unsigned index = 0; index < thread_count; index++)
    if (before >> index & 1 && !wakes(&threads[index].pending, &step->operation))
      asleep |= (uint8_t)(1u << index);
  return asleep;
}

static void end_run(void) {
  if (current != THREADS) switch_to(THREADS);
}

static int lowest(unsigned set) { return __builtin_ctz(set); }

/* All threads stand before a step (or are done): the one that goes on, or -1 at the end of the
 * run. */
static int choose(void) {
  uint8_t enabled = 0, alive = 0, asleep;
  for (unsigned index = 0; index < thread_count; index++) {
    enabled |= (uint8_t)(is_enabled(&threads[index]) << index);
    alive |= (uint8_t)(!threads[index].is_done << index);
  }
  if (!alive) return -1;
  if (!enabled) violation("all threads wait", "for ever", 0);
  asleep = step_count && !scenario->is_unreduced ? asleep_after(&steps[step_count]) : 0;
  if (step_count == STEPS_MAX) violation("goes on and on", "steps", STEPS_MAX);
  struct step *step = &steps[++step_count];
  if (step_count <= replayed) {
    if (step->enabled != enabled) violation("the model is not deterministic", __FILE__, __LINE__);
    return step->thread;
  }
  *step = (struct step){.enabled = enabled, .sleep = asleep};
  if (!(enabled & ~asleep)) {
    step_count--;
    is_abandoned = true;
    return -1;
  }
  /* The thread that runs goes on if it may: fewest switches. */
  bool goes_on = current != THREADS && (enabled & ~asleep) >> current & 1;
  step->thread = (uint8_t)(goes_on ? current : lowest(enabled & ~asleep));
  step->backtrack = scenario->is_unreduced ? enabled : (uint8_t)(1u << step->thread);
  return step->thread;
}

static void go_on(void) {
  int next = choose();
  if (next < 0)
    end_run();
  else if (next != current)
    switch_to(next);
}

/* Threads first run up to their first step, one after the other. */
static unsigned arrived;

static void arrive(void) {
  if (arrived < thread_count) {
    arrived++;
    if (arrived < thread_count)
      switch_to((int)arrived);
    else
      go_on();
  } else {
    go_on();
  }
}

uint64_t visible(const struct operation *operation) {
  threads[current].pending = *operation;
  arrive();
  return make_step();
}

void finish_thread(void) {
  threads[current].is_done = true;
  arrive();
  abort();
}

/* ---- the search ------------------------------------------------------------------------------ */

static void start_thread(unsigned index) {
  struct thread *thread = &threads[index];
  thread->body = scenario->threads[index];
  thread->is_started = thread->is_done = thread->is_woken = false;
  thread->sleeps_on = -1;
  thread->watched_count = 0;
  memset(thread->vector, 0, sizeof thread->vector);
  thread->vector[index] = 1;
  memset(thread->view, 0, sizeof thread->view);
  memset(thread->clock, 0, sizeof thread->clock);
  memcpy(thread->tls, threads[THREADS].tls, sizeof thread->tls);
  getcontext(&thread->start);
  thread->start.uc_stack.ss_sp = stacks[index];
  thread->start.uc_stack.ss_size = STACK_BYTES;
  makecontext(&thread->start, thread_main, 0);
}

static uint64_t outcomes[OUTCOMES_MAX];
uint64_t outcome_count, outcome_sum;

static void note_outcome(uint64_t outcome) {
  outcome |= 1;
  size_t hash = outcome * UINT64_C(0x9E3779B97F4A7C15) % OUTCOMES_MAX;
  while (outcomes[hash] && outcomes[hash] != outcome) hash = (hash + 1) % OUTCOMES_MAX;
  if (outcomes[hash]) return;
  if (++outcome_count == OUTCOMES_MAX) overflow("outcomes");
  outcomes[hash] = outcome;
  outcome_sum += outcome * UINT64_C(0x9E3779B97F4A7C15);
}

static void run_once(void) {
  run_number++;
  forget_messages();
  step_count = arrived = 0;
  is_abandoned = false;
  memcpy(threads[THREADS].tls, tls_block, tls_bytes);
  for (unsigned index = 0; index < thread_count; index++) start_thread(index);
  phase = RUNNING;
  switch_to(0);
  phase = CHECKING;
  if (!is_abandoned) { /* else all that could follow has been run already */
    if (scenario->check) scenario->check();
    if (scenario->outcome) note_outcome(scenario->outcome());
    schedules++;
  }
  undo_all();
  phase = OUTSIDE;
}

/* The deepest step that has something left to try; false when there is none. */
static bool find_next(void) {
  for (; step_count; step_count--) {
    struct step *step = &steps[step_count];
    if (step->choice + 1 < step->choices) {
      step->choice++;
      break;
    }
    step->done |= (uint8_t)(1u << step->thread);
    unsigned rest = step->backtrack & ~step->done & ~step->sleep;
    if (rest) {
      step->thread = (uint8_t)lowest(rest);
      step->choice = 0;
      break;
    }
  }
  replayed = step_count;
  return replayed != 0;
}

void search(void) {
  dl_iterate_phdr(find_tls, NULL);
  if (tls_bytes > TLS_MAX) overflow("thread-local bytes");
  while (thread_count < THREADS && scenario->threads[thread_count]) thread_count++;
  threads[THREADS].is_started = true;
  scenario->set_up();
  uint64_t schedules_max = getenv("ALL") ? UINT64_MAX : SCHEDULES_QUICK_MAX;
  do run_once();
  while (find_next() && schedules < schedules_max);
}
