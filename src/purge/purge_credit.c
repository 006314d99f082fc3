#include "purge/purge_credit.h"

#include "base/counters.h"
#include "config/options.h"
#include "purge/purge.h"

#define BYTES_A_MS ((int64_t)64 << 10)
enum { REFAULT_COST = 2 };

/* Relaxed: a lost update costs some page faults. */
static ATOMIC(int64_t) balance;
static ATOMIC(uint64_t) earned_ms; /* processor time that is in the balance */
static ATOMIC(uint64_t) refaulted; /* totals.refaulted_bytes that are in it */

/* The kernel sums up the time of all threads, 60 ns for each: with a thousand that exceeds the
 * savings. So it is rarely asked for. */
static int64_t earn(void) {
  static ATOMIC(uint64_t) asked_at_ms; /* by the clock */
  uint64_t clock_ms = os_now_coarse_ms();
  if (clock_ms - load_relaxed(&asked_at_ms) < PURGE_LEAST_MS) return 0;
  store_relaxed(&asked_at_ms, clock_ms);
  uint64_t now_ms = os_processor_ms(), before_ms = load_relaxed(&earned_ms);
  store_relaxed(&earned_ms, now_ms);
  return now_ms > before_ms ? (int64_t)(now_ms - before_ms) * BYTES_A_MS : 0; /* a forked child */
}

int64_t purge_credit(void) {
  uint64_t again = load_relaxed(&totals.refaulted_bytes);
  int64_t lost = (int64_t)(again - load_relaxed(&refaulted)) * REFAULT_COST;
  int64_t now = load_relaxed(&balance) + earn() - lost, most = (int64_t)options.big_cache_bytes;
  now = now > most ? most : now < -most ? -most : now;
  store_relaxed(&refaulted, again);
  store_relaxed(&balance, now);
  return now;
}

void purge_credit_spend(uint64_t bytes) {
  int64_t before = load_relaxed(&balance),
          spent = before < (int64_t)bytes ? before : (int64_t)bytes;
  if (spent > 0) store_relaxed(&balance, before - spent);
}
