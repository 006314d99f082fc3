#include "pool/purge_credit.h"

#include "base/atomic.h"
#include "os/os.h"

enum { MS_PER_GRANULE = 1, SAVED_MAX_MS = 1000 };

/* The processor time at which the memory given back so far will have been earned. */
static ATOMIC(uint64_t) spent_until_ms;

/* The kernel sums up the time of all threads, 60 ns for each: with a thousand growing threads that exceeds the savings. So the last
 * reading is used for a while. */
enum { ASK_EVERY_MS = 16 };
static ATOMIC(uint64_t) heard_ms;    /* of processor time */
static ATOMIC(uint64_t) asked_at_ms; /* by the clock */

static uint64_t ask(void) {
  uint64_t clock_ms = os_now_coarse_ms();
  if (clock_ms - load_relaxed(&asked_at_ms) >= ASK_EVERY_MS) {
    store_relaxed(&asked_at_ms, clock_ms);
    store_relaxed(&heard_ms, os_processor_ms());
  }
  return load_relaxed(&heard_ms);
}

bool purge_credit_allows(size_t granules) {
  uint64_t now_ms = ask(), until_ms = load_relaxed(&spent_until_ms);
  if (until_ms + SAVED_MAX_MS < now_ms)
    store_relaxed(&spent_until_ms, until_ms = now_ms - SAVED_MAX_MS);
  return until_ms + granules * MS_PER_GRANULE <= now_ms;
}

void purge_credit_note(size_t granules) {
  fetch_add_relaxed(&spent_until_ms, granules * MS_PER_GRANULE);
}
