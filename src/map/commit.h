/* commit.h: the amount of memory held by hakmem that is, or may be, resident; and the hard limit on
 * it.
 *
 * Slots and ranges count from when their pages may first be touched until they are given back to
 * the system, whether in use or free, and so do hakmem's own records. With a hard limit the last
 * pages of a fresh range do not count while the request ends before them (ranges/range.h). Only
 * slow paths count: a slab, a range or a record at a time.
 *
 *   law: taken before the memory may be touched, given after it is gone; so
 *   totals.committed_bytes is never
 *        less than its resident part, and with HAKMEM_LIMIT_HARD never more than the limit */
#ifndef HAK_MAP_COMMIT_H
#define HAK_MAP_COMMIT_H

#include "base/counters.h"
#include "config/limits.h"

/* For a process with a hard limit; the second counts a refusal. */
bool commit_take_if_allowed(size_t bytes);
bool commit_take_within_limit(size_t bytes);

/* False when the hard limit forbids `bytes` more. */
INLINE bool commit_take(size_t bytes) {
  if (UNLIKELY(limits.hard_bytes)) return commit_take_within_limit(bytes);
  uint64_t before = fetch_add_relaxed(&totals.committed_bytes, bytes);
  count_peak(&totals.committed_peak_bytes, before + bytes);
  return true;
}

INLINE void commit_give(size_t bytes) { fetch_sub_relaxed(&totals.committed_bytes, bytes); }

/* Corrects `taken` bytes to the needed number. If more is needed, another thread gave pages back
 * meanwhile: none is asked. */
INLINE void commit_settle(size_t taken, size_t needed) {
  if (taken != needed) fetch_add_relaxed(&totals.committed_bytes, (uint64_t)needed - taken);
}

/* Whether more than the soft limit is committed. */
INLINE bool commit_is_too_much(void) {
  uint64_t soft_bytes = load_relaxed(&limits.soft_bytes);
  return UNLIKELY(soft_bytes != 0) && load_relaxed(&totals.committed_bytes) > soft_bytes;
}

#endif
