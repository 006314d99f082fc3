#include "reclaim/regret.h"

#include "base/counters.h"
#include "config/limits.h"
#include "config/options.h"
#include "map/window.h"
#include "pool/purge_credit.h"

/* Soon means within SOON_DECAYS decay times. Purges below WORTH_BYTES are not judged. */
enum { SOON_DECAYS = 8 };
#define WORTH_BYTES ((uint64_t)4 << 20)

/* Relaxed: rounds are one at a time, and a lost update is made up for by the next round. */
static ATOMIC(uint64_t) given_bytes;   /* since the last judgement */
static ATOMIC(uint64_t) at_once_bytes; /* of given_bytes */
static ATOMIC(uint64_t) refaulted_before;
static ATOMIC(uint32_t) begun_at_ms; /* time of the last judgement, or of the first purge since */
static ATOMIC(uint32_t) level;

RESIDENT unsigned regret_level(void) {
  /* Near a cgroup's limit the shortened decay time stays as it is. */
  return LIKELY(!load_relaxed(&limits.decay_cut)) ? load_relaxed(&level) : 0;
}

void regret_note_given(const struct purge *purge, bool at_once) {
  if (!purge->purged_bytes) return;
  if (!load_relaxed(&given_bytes)) {
    store_relaxed(&refaulted_before, load_relaxed(&totals.refaulted_bytes));
    store_relaxed(&begun_at_ms, purge->now_ms);
  }
  fetch_add_relaxed(&given_bytes, purge->purged_bytes);
  if (at_once) fetch_add_relaxed(&at_once_bytes, purge->purged_bytes);
}

static void begin_anew(uint32_t now_ms, uint32_t new_level) {
  store_relaxed(&given_bytes, 0);
  store_relaxed(&at_once_bytes, 0);
  store_relaxed(&begun_at_ms, now_ms);
  store_relaxed(&level, new_level);
}

void regret_judge(uint32_t now_ms) {
  uint64_t given = load_relaxed(&given_bytes), at_once = load_relaxed(&at_once_bytes);
  uint64_t again = load_relaxed(&totals.refaulted_bytes) - load_relaxed(&refaulted_before);
  if (given >= WORTH_BYTES && again >= given / 2) {
    purge_credit_note((again < at_once ? again : at_once) >> GRANULE_SHIFT);
    begin_anew(now_ms, 1);
  } else if (now_ms - load_relaxed(&begun_at_ms) > SOON_DECAYS * options.decay_ms) {
    begin_anew(now_ms, 0);
  }
}
