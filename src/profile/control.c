#include "profile/control.h"

#include "base/scan.h"
#include "config/options.h"
#include "os/os.h"
#include "report/report.h"
#include "stack/unwind.h"

/* ---- on and off ------------------------------------------------------------------------------ */

static bool has_tracers(void) {
  struct profile_word now = profile_word_parts(load_relaxed(&profile_control.word));
  return now.alloc_semaphore || now.free_semaphore;
}

static bool is_asked_for(uint64_t now_ms) {
  uint64_t lease_ms = load_relaxed(&profile_control.lease_ms);
  return load_relaxed(&profile_control.flags) & PROFILE_ON && (!lease_ms || now_ms < lease_ms);
}

/* The state that R adapts by, as of the last adaptation; written by the thread that advances
 * window_ms. */
static struct {
  ATOMIC(uint64_t) window_ms;
  ATOMIC(uint64_t) samples;
  ATOMIC(uint64_t) sampling_ns;
  ATOMIC(uint64_t) processor_ms;
  ATOMIC(int64_t) credit_ns; /* the time that sampling may use, less the time used */
} adapting;

/* Sampling may use 1/200 of the process's processor time, or 1/1000 of one processor where that is
 * more, since a program that mostly sleeps leaks as well; and FIRST_CREDIT_NS at the start. */
enum { COST_DIVISOR = 200, IDLE_DIVISOR = 1000, FIRST_CREDIT_NS = 1000000, NS_PER_MS = 1000000 };

static void begin(uint64_t now_ms) {
  store_relaxed(&adapting.window_ms, now_ms);
  store_relaxed(&adapting.samples, load_relaxed(&profile_state.samples));
  store_relaxed(&adapting.sampling_ns, load_relaxed(&profile_state.sampling_ns));
  store_relaxed(&adapting.processor_ms, os_processor_ms());
  store_relaxed(&adapting.credit_ns, FIRST_CREDIT_NS);
  store_relaxed(&profile_state.period_bytes, PROFILE_PERIOD_FIRST);
  store_relaxed(&profile_state.period_bytes,
                profile_period_bytes()); /* a fixed one may differ from the last */
  store_relaxed(&profile_state.began_ms, now_ms);
  fetch_add_relaxed(&profile_state.sessions, 1);
}

bool profile_look(uint64_t now_ms) {
  uint32_t status = load_relaxed(&profile_state.status);
  if (status == PROFILE_IS_REFUSED) return false;
  bool is_on = is_asked_for(now_ms) || has_tracers();
  uint32_t wanted = is_on ? PROFILE_IS_ON : PROFILE_IS_OFF;
  /* acq_rel: orders nothing; one thread notes the change. */
  if (status != wanted && cas_strong_acq_rel(&profile_state.status, &status, wanted)) {
    if (is_on)
      begin(now_ms);
    else
      store_relaxed(&profile_state.ended_ms, now_ms);
  }
  return is_on;
}

bool profile_wants_trace(uint64_t now_ms) {
  return now_ms < load_relaxed(&profile_control.trace_lease_ms) &&
         load_relaxed(&profile_state.status) != PROFILE_IS_REFUSED;
}

/* The only place that switches a profile on without a tool. */
static void turn_on(uint64_t period_bytes) {
  unwind_prepare();
  store_relaxed(&profile_control.period_bytes, period_bytes);
  store_relaxed(&profile_control.flags, PROFILE_ON);
  profile_control.parts.generation = 1;
}

/* The tool, which started the program so, renews the lease. */
enum { TRACE_LEASE_MS = 10000 };
static void trace_at_once(void) {
  store_relaxed(&profile_control.trace_lease_ms, os_now_coarse_ms() + TRACE_LEASE_MS);
  profile_control.parts.generation = 1;
}

void profile_start(void) {
  uint64_t period_bytes;
  if (scan_equals(options.profile, "0")) return; /* nearly always */
  if (scan_equals(options.profile, "never"))
    store_relaxed(&profile_state.status, PROFILE_IS_REFUSED);
  else if (scan_equals(options.profile, "trace"))
    trace_at_once();
  else if (!bytes_parse(options.profile, &period_bytes))
    report_line("warning: HAKMEM_PROFILE=\"%s\" is not never, 0, 1 or a number of bytes; ignored",
                options.profile);
  else if (period_bytes)
    turn_on(period_bytes == 1 ? 0 : period_bytes);
}

/* Advances the generation, as a tool does by writing single bytes. A tracer's semaphores lie in the
 * same word. */
static void announce(void) {
  uint64_t word = load_relaxed(&profile_control.word);
  struct profile_word next;
  do {
    next = profile_word_parts(word);
    next.generation = next.generation == UINT8_MAX ? 1 : (uint8_t)(next.generation + 1);
    /* release: the rest of the record; pairs with divert_look. */
  } while (!cas_weak_acq_rel(&profile_control.word, &word, profile_word_of(next)));
}

bool profile_ask(bool is_on, uint64_t period_bytes) {
  if (load_relaxed(&profile_state.status) == PROFILE_IS_REFUSED) return false;
  if (is_on) store_relaxed(&profile_control.period_bytes, period_bytes);
  store_relaxed(&profile_control.lease_ms, 0);
  store_relaxed(&profile_control.cost_percent, 0);
  store_relaxed(&profile_control.flags, is_on ? PROFILE_ON : 0);
  announce();
  return true;
}

/* The program waits for the tool at its start: a ring may be full after some milliseconds. */
enum { KEEPER_PATIENCE_MS = 1000 };
void profile_keep(void) {
  if (LIKELY(!*options.keeper)) return;
  bool is_traced = profile_wants_trace(os_now_coarse_ms());
  os_start_keeper(options.keeper, is_traced ? KEEPER_PATIENCE_MS : 0);
}

enum { TRACE_LEASE_OVER_MS = 1 };
void profile_after_fork(void) {
  if (UNLIKELY(load_relaxed(&profile_control.trace_lease_ms))) {
    store_relaxed(&profile_control.trace_lease_ms, TRACE_LEASE_OVER_MS); /* no tool reads these */
    announce();
  }
  profile_keep();
}

/* ---- R --------------------------------------------------------------------------------------- */

static uint64_t clamp(uint64_t period_bytes) {
  if (period_bytes < PROFILE_PERIOD_MIN) return PROFILE_PERIOD_MIN;
  return period_bytes < PROFILE_PERIOD_MAX ? period_bytes : PROFILE_PERIOD_MAX;
}

uint64_t profile_period_bytes(void) {
  uint64_t fixed = load_relaxed(&profile_control.period_bytes);
  if (fixed) return clamp(fixed);
  bool is_for_tracers = has_tracers() && !(load_relaxed(&profile_control.flags) & PROFILE_ON);
  return is_for_tracers ? PROFILE_PERIOD_PROBES : clamp(load_relaxed(&profile_state.period_bytes));
}

enum { WINDOW_MS = 50 };
static const double MOST_UP = 8, MOST_DOWN = 16;

/* The growth of a figure since the last call. */
static uint64_t growth(ATOMIC(uint64_t) *last, uint64_t now) {
  uint64_t before = load_relaxed(last);
  store_relaxed(last, now);
  return now - before;
}

/* An interactive tool may ask for more than half a percent of processor time; the samples grow in
 * proportion. */
static unsigned scale(void) {
  unsigned percent = load_relaxed(&profile_control.cost_percent);
  return percent ? 2 * (percent < 100 ? percent : 100) : 1;
}

/* The time that sampling used in this window as a multiple of what it may use; above 1 only when no
 * credit is left. */
static double cost(uint64_t elapsed_ms) {
  uint64_t spent_ns = growth(&adapting.sampling_ns, load_relaxed(&profile_state.sampling_ns));
  uint64_t used_ms = growth(&adapting.processor_ms, os_processor_ms());
  uint64_t of_idle_ns = elapsed_ms * NS_PER_MS / IDLE_DIVISOR;
  int64_t allowed_ns = (int64_t)(used_ms * NS_PER_MS / COST_DIVISOR);
  if (allowed_ns < (int64_t)of_idle_ns) allowed_ns = (int64_t)of_idle_ns;
  allowed_ns *= scale();
  int64_t credit_ns = load_relaxed(&adapting.credit_ns) + allowed_ns - (int64_t)spent_ns;
  store_relaxed(&adapting.credit_ns, credit_ns < FIRST_CREDIT_NS ? credit_ns : FIRST_CREDIT_NS);
  double multiple = allowed_ns ? (double)spent_ns / (double)allowed_ns : 1;
  if (credit_ns >= 0) return multiple / MOST_UP;
  return multiple > 1 ? multiple : 1;
}

static double next_factor(uint64_t samples, uint64_t elapsed_ms) {
  uint32_t rate = load_relaxed(&profile_control.samples_per_second);
  double wanted = (double)(rate ? rate : PROFILE_RATE * scale()) * (double)elapsed_ms / 1000;
  double factor = (double)samples / wanted, price = cost(elapsed_ms);
  if (factor < price) factor = price;
  if (factor > MOST_UP) return MOST_UP;
  return factor < 1.0 / MOST_DOWN ? 1.0 / MOST_DOWN : factor;
}

void profile_adapt(uint64_t now_ms) {
  uint64_t before_ms = load_relaxed(&adapting.window_ms);
  if (LIKELY(now_ms < before_ms + WINDOW_MS)) return;
  if (os_is_multi_threaded() && os_is_guest()) return; /* it has other processor time */
  /* acq_rel: orders nothing; one thread goes on. */
  if (!cas_strong_acq_rel(&adapting.window_ms, &before_ms, now_ms)) return;
  uint64_t samples = growth(&adapting.samples, load_relaxed(&profile_state.samples));
  double factor = next_factor(samples, now_ms - before_ms);
  bool is_fixed = load_relaxed(&profile_control.period_bytes) != 0;
  double period = (double)profile_period_bytes() * (is_fixed ? 1 : factor);
  store_relaxed(&profile_state.period_bytes, clamp((uint64_t)period));
}

/* ---- the rest -------------------------------------------------------------------------------- */

unsigned profile_depth(void) {
  unsigned depth = load_relaxed(&profile_control.stack_depth);
  return depth && depth < PROFILE_DEPTH_MAX ? depth : PROFILE_DEPTH_MAX;
}

bool profile_wants_purge(void) {
  return UNLIKELY(load_relaxed(&profile_control.purge_request) !=
                  load_relaxed(&profile_state.purges_begun)) &&
         load_relaxed(&profile_state.status) != PROFILE_IS_REFUSED;
}

uint32_t profile_begin_purge(void) {
  uint32_t request = load_relaxed(&profile_control.purge_request);
  uint32_t begun = load_relaxed(&profile_state.purges_begun);
  if (request == begun) return 0;
  /* acq_rel: orders nothing; one thread gives back. */
  return cas_strong_acq_rel(&profile_state.purges_begun, &begun, request) ? request : 0;
}

void profile_end_purge(uint32_t request) { store_relaxed(&profile_state.purges_done, request); }
