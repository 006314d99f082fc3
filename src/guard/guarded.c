#include "guard/guarded.h"

#include "config/options.h"
#include "map/commit.h"
#include "map/metadata.h"

RARE_DATA struct guard_report guard_report;
static struct guard *guards;
static size_t first_granule;
static ATOMIC(unsigned) guard_count; /* 0 until there are ranges; then all above is constant */

/* When each range became free, in steps of `steps`: 0 before its first block, IN_USE while it has
 * one. */
static ATOMIC(uint64_t) *free_since;
static ATOMIC(uint64_t) steps;
static ATOMIC(unsigned) used_count; /* relaxed: a hint */

#define IN_USE UINT64_MAX

/* ---- the ranges ------------------------------------------------------------------------------ */

static size_t granule_at(size_t index) { return first_granule + index * guarded_granules(); }
static size_t index_of(size_t granule) { return (granule - first_granule) / guarded_granules(); }

/* Cuts the first range, as far as there is memory for records; returns the number of ranges. A
 * closed one holds no memory. */
static unsigned cut(unsigned count, bool are_closed, struct counters *counters) {
  unsigned made = 0;
  while (made < count - 1 && range_cut(granule_at(made), guarded_granules(), counters)) made++;
  if (made == count - 1) made = count; /* the last is what the others have left */
  for (unsigned index = 0; index < made; index++) {
    struct range_info *info = range_info(granule_at(index));
    info->is_guarded = info->is_zero = true;
    info->is_closed = are_closed;
    commit_give(guarded_granules() << GRANULE_SHIFT);
  }
  return made;
}

bool guarded_start(struct counters *counters) {
  size_t granules = guarded_granules();
  unsigned count = (unsigned)(options.guard_bytes / (granules << GRANULE_SHIFT));
  if (guarded_is_ready()) return true;
  if (!guards) guards = metadata_allocate(count * sizeof *guards);
  if (!free_since) free_since = metadata_allocate(count * sizeof *free_since);
  if (!guards || !free_since) return false;
  struct range_request request = {count * granules, 1, 0, 0};
  size_t first = range_take_fresh(&request, counters);
  if (first == NO_GRANULE) return false;
  first_granule = first;
  bool are_closed =
      os_close_pages((void *)granule_address(first), count * granules << GRANULE_SHIFT);
  store_release(&guard_count, cut(count, are_closed, counters)); /* pairs with guarded_is_ready */
  return guarded_is_ready();
}

bool guarded_is_ready(void) {
  return load_acquire(&guard_count) != 0; /* pairs with guarded_start */
}

/* A thread that a fork cuts off here leaves one that the child never uses. */
size_t guarded_take(void) {
  unsigned count = load_acquire(&guard_count); /* pairs with guarded_start */
  for (;;) {
    unsigned oldest = count;
    uint64_t since = IN_USE;
    for (unsigned step = 0; step < count; step++) {
      unsigned index = step + count / 2; /* the first blocks have closed ranges on both sides */
      if (index >= count) index -= count;
      uint64_t here = load_relaxed(&free_since[index]);
      if (here >= since) continue;
      since = here;
      oldest = index;
    }
    if (oldest == count) return NO_GRANULE;
    /* acq_rel: one thread gets it; the range as it was left, pairs with guarded_give. */
    if (!cas_strong_acq_rel(&free_since[oldest], &since, IN_USE)) continue;
    fetch_add_relaxed(&used_count, 1);
    return granule_at(oldest);
  }
}

void guarded_give(size_t granule) {
  fetch_sub_relaxed(&used_count, 1);
  /* release: earlier accesses to the range; pairs with guarded_take. */
  store_release(&free_since[index_of(granule)], fetch_add_relaxed(&steps, 1) + 1);
}

unsigned guarded_tenths_used(void) {
  unsigned count = load_relaxed(&guard_count);
  return count ? 10 * load_relaxed(&used_count) / count : 0;
}

/* ---- the stacks ------------------------------------------------------------------------------ */

static struct guard *guard_of(size_t granule) { return &guards[index_of(granule)]; }

void guarded_note_malloc(size_t granule) { call_stack_note(&guard_of(granule)->allocated, 0); }
void guarded_note_free(size_t granule) { call_stack_note(&guard_of(granule)->freed, 0); }

static void tell(const struct misuse *misuse, bool is_freed) {
  const struct block_description *block = misuse->block;
  const struct guard *guard = guard_of(granule_of(block->base));
  struct call_stack here;
  call_stack_note(&here, misuse->caller);
  guard_report =
      (struct guard_report){guard,       misuse->kind,       misuse->verb, misuse->address,
                            block->base, block->block_bytes, is_freed,     here};
  report_stack(misuse->verb, &here);
  report_stack("allocated", &guard->allocated);
  if (is_freed) report_stack("freed", &guard->freed);
}

static void tell_of_live(const struct misuse *misuse) { tell(misuse, false); }
static void tell_of_freed(const struct misuse *misuse) { tell(misuse, true); }

void guarded_describe(bool is_live, struct block_description *description) {
  description->tier = "guarded";
  description->tell_stacks = is_live ? tell_of_live : tell_of_freed;
}
