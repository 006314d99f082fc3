#include "pool/purge_credit.h"

#include "base/atomic.h"
#include "os/os.h"

enum { MS_PER_GRANULE = 1, SAVED_MAX_MS = 1000 };

/* The processor time at which what was given back will have been earned. */
static ATOMIC(uint64_t) spent_until_ms;

bool purge_credit_allows(size_t granules) {
  uint64_t now_ms = os_processor_ms(), until_ms = load_relaxed(&spent_until_ms);
  if (until_ms + SAVED_MAX_MS < now_ms)
    store_relaxed(&spent_until_ms, until_ms = now_ms - SAVED_MAX_MS);
  return until_ms + granules * MS_PER_GRANULE <= now_ms;
}

void purge_credit_note(size_t granules) {
  fetch_add_relaxed(&spent_until_ms, granules * MS_PER_GRANULE);
}
