#include "pool/purge_credit.h"

#include "base/atomic.h"
#include "os/os.h"

enum { MS_PER_GRANULE = 1, SAVED_MAX_MS = 1000 };

/* The processor time at which what was given back will have been earned. */
static ATOMIC(uint64_t) spent_until_ms;

/* The kernel adds up all threads for an answer, 57 ns for each: it is asked once in so many milliseconds of the clock. */
enum { ASK_EVERY_MS = 16 };
static ATOMIC(uint64_t) asked_ms, processor_ms; /* relaxed: of two threads that ask at once one is enough */

static uint64_t processor_ms_lately(void) {
  uint64_t now_ms = os_now_coarse_ms();
  if (now_ms - load_relaxed(&asked_ms) >= ASK_EVERY_MS) {
    store_relaxed(&asked_ms, now_ms);
    store_relaxed(&processor_ms, os_processor_ms());
  }
  return load_relaxed(&processor_ms);
}

bool purge_credit_allows(size_t granules) {
  uint64_t now_ms = processor_ms_lately(), until_ms = load_relaxed(&spent_until_ms);
  if (until_ms + SAVED_MAX_MS < now_ms)
    store_relaxed(&spent_until_ms, until_ms = now_ms - SAVED_MAX_MS);
  return until_ms + granules * MS_PER_GRANULE <= now_ms;
}

void purge_credit_note(size_t granules) {
  fetch_add_relaxed(&spent_until_ms, granules * MS_PER_GRANULE);
}
