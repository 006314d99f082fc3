#include "map/commit.h"

bool commit_take_if_allowed(size_t bytes) {
  uint64_t before = load_relaxed(&totals.committed_bytes);
  do {
    if (bytes > limits.hard_bytes || before > limits.hard_bytes - bytes) return false;
    /* No order is needed: the sum alone matters. */
  } while (!cas_weak_acq_rel(&totals.committed_bytes, &before, before + bytes));
  count_peak(&totals.committed_peak_bytes, before + bytes);
  return true;
}

bool commit_take_within_limit(size_t bytes) {
  if (commit_take_if_allowed(bytes)) return true;
  fetch_add_relaxed(&totals.limit_hard_refusals, 1);
  return false;
}
