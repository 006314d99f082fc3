#include "reclaim/own.h"

#include "cache/capacity.h"
#include "cache/flush.h"
#include "cache/remote_buffer.h"
#include "config/options.h"
#include "map/commit.h"
#include "reclaim/reclaim.h"
#include "slab/adopt.h"

/* ---- caches ---------------------------------------------------------------------------------------------- */

/* A magazine that is the same at two checks is taken for idle; being wrong costs one refill. */
static void flush_magazine(struct heap *heap, unsigned class, bool is_idle) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned block_count = magazine_count(magazine);
  bool is_too_much = capacity_exceeds_budget(heap, class);
  is_idle |= block_count == magazine->seen_count;
  magazine->seen_count = (uint16_t)block_count;
  if (!is_idle && !is_too_much) return;
  if (block_count) batch_flush_whole(heap, class);
  magazine->seen_count = 0;
  if (is_too_much || !block_count) capacity_shrink(heap, class);
}

NOINLINE static void flush(struct heap *heap, bool is_idle) {
  heap_enter(heap);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) flush_magazine(heap, class, is_idle);
  remote_buffer_empty(&heap->remote_buffer, &heap->owner.counters);
  latch_take(&heap->owner);
  owner_drain_all(&heap->owner);
  latch_give(&heap->owner);
  heap_leave(heap);
}

/* A thread that was not here for a decay time since it was due has left all its caches idle. */
RESIDENT void own_flush_when_due(struct heap *heap, uint64_t now_ms) {
  if (now_ms < heap->next_flush_ms) return;
  bool has_time = heap->next_flush_ms != 0; /* else the first is an interval from now */
  bool is_idle = (options.decay_ms && now_ms >= heap->next_flush_ms + reclaim_decay_ms()) ||
                 commit_is_too_much();
  heap->next_flush_ms = now_ms + reclaim_interval_ms();
  if (has_time) flush(heap, is_idle);
}

/* It is left alone until it has had time to fill its magazines with what it does not want. */
enum { SETTLED_SLOW_PATHS = 64 };

NOINLINE static void answer(struct heap *heap) {
  store_relaxed(&heap->is_called, false);
  flush(heap, true);
  store_relaxed(&heap->settled, load_relaxed(&heap->owner.slow_paths) + SETTLED_SLOW_PATHS);
}

RESIDENT bool own_answer_call(struct heap *heap) {
  bool is_called = load_relaxed(&heap->is_called);
  if (UNLIKELY(is_called)) answer(heap);
  return is_called;
}

/* ---- free pages in slabs ------------------------------------------------------------------------------------ */

/* How much sooner the next scan comes when there was more to be given back than one may. */
enum { SCANS_PER_INTERVAL = 8 };

NOINLINE static void scan(struct heap *heap, uint64_t now_ms, uint64_t interval_ms) {
  struct purge purge = reclaim(heap, RECLAIM_OWN_PAGES);
  heap->has_waiting_pages = purge.work_remains;
  if (purge.is_cut) heap->next_scan_ms = now_ms + interval_ms / SCANS_PER_INTERVAL;
}

RESIDENT void own_scan_when_due(struct heap *heap, uint64_t now_ms) {
  if (now_ms < heap->next_scan_ms) return;
  bool has_time = heap->next_scan_ms != 0;
  uint64_t interval_ms = reclaim_page_decay_ms() / RECLAIM_ROUNDS_PER_DECAY;
  heap->next_scan_ms = now_ms + interval_ms;
  if (has_time) scan(heap, now_ms, interval_ms);
}
