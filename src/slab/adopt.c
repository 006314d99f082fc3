#include "slab/adopt.h"

#include "slab/pages.h"
#include "slab/pending.h"
#include "slab/slab.h"

/* Live owners, and queued slabs of one, that one slow path scans. */
enum { ROUTE_P_PROBES = 8 };

/* Both latches are held. Moves an unlisted slab, `queued` or not, to its new owner; NULL stays
 * NULL. */
static struct slab *take_over(struct slab *slab, struct owner *from, struct owner *owner) {
  if (!slab) return NULL;
  ASSERT(latch_is_held(from) && !slab->is_listed);
  int64_t bytes = (int64_t)(slab->capacity - slab->free_local) * slab->block_bytes;
  owner_loses_slab(from, slab);
  add_single_writer(&from->bytes_out, -bytes);
  add_single_writer(&owner->bytes_out, bytes);
  slab_own(slab, owner);
  return slab;
}

bool owner_idled(struct owner *owner, uint64_t now_ns, uint64_t for_ns) {
  uint64_t slow_paths = load_relaxed(&owner->slow_paths);
  if (load_relaxed(&owner->seen_slow_paths) != slow_paths) {
    store_relaxed(&owner->seen_slow_paths, slow_paths);
    store_relaxed(&owner->seen_ns, now_ns);
  }
  /* Signed: another observer's time may be later. */
  return (int64_t)(now_ns - load_relaxed(&owner->seen_ns)) >= (int64_t)for_ns;
}

/* ---- ended and dormant owners ---------------------------------------------------------------- */

/* Drains the owner's queue of the class until a slab with free blocks turns up. */
static struct slab *detach_listed(struct owner *ended, unsigned class) {
  struct slab *slab;
  while (!ended->bins[class].partial && (slab = pending_next(ended, class)))
    pending_drain(slab, ended);
  slab = ended->bins[class].partial;
  if (slab) slab_unlist(slab, ended);
  return slab;
}

/* Latch of `ended`.  An unlisted slab with free blocks, still owned by `ended`, or NULL. */
RESIDENT static struct slab *detach_slab(struct owner *ended, unsigned class) {
  struct bin *bin = &ended->bins[class];
  struct slab *slab = bin->current;
  if (slab && (slab->free_local || slab_collect(slab, ended))) {
    show(bin, current, NULL);
    return slab;
  }
  return detach_listed(ended, class);
}

static bool is_adoptable(const struct owner *candidate) {
  /* seq: after the bit of orphan_mask was cleared; pairs with change_state.  Checked again under
   * the latch. */
  uint32_t state = load_seq(&candidate->state);
  return state == OWNER_PARKED || state == OWNER_DORMANT;
}

/* NULL with *was_busy set when another thread holds the latch. */
static struct slab *adopt_from(struct owner *ended, struct owner *owner, unsigned class,
                               bool *was_busy) {
  if (!is_adoptable(ended)) return NULL;
  if (!latch_try(ended)) return *was_busy = true, NULL;
  struct slab *slab =
      is_adoptable(ended) ? take_over(detach_slab(ended, class), ended, owner) : NULL;
  latch_give(ended);
  return slab;
}

struct slab *adopt_from_shared(struct owner *shared, struct owner *owner, unsigned class) {
  return take_over(detach_slab(shared, class), shared, owner);
}

struct slab *adopt_listed(struct owner *shared, struct owner *owner, unsigned class) {
  return take_over(detach_listed(shared, class), shared, owner);
}

/* Owners that one visit scans: a thousand threads may have ended.  The next visit goes on from
 * there. */
enum { ENDED_PROBES = 64 };
static ATOMIC(struct owner *) next_ended[SLAB_CLASS_COUNT]; /* NULL: the first */

/* Scans from `begin` on. */
NOINLINE static struct slab *adopt_next(struct owner *owner, unsigned class, struct owner *begin) {
  uint64_t bit = UINT64_C(1) << class;
  if (owner_is_named(owner)) return NULL;
  /* seq: cleared before we scan; a thread that parks or queues afterwards sets it again. */
  if (!begin) fetch_and_seq(&orphan_mask, ~bit);
  struct slab *slab = NULL;
  bool was_busy = false;
  struct owner *ended = begin ? begin : owners_first(), *last = ended;
  for (unsigned probe = 0; ended && !slab && probe < ENDED_PROBES; probe++) {
    last = ended;
    if (ended != owner) slab = adopt_from(ended, owner, class, &was_busy);
    ended = ended->next_of_all;
  }
  if (slab || was_busy) orphan_mask_add(bit); /* there may be more */
  /* A thread that finds the start moved by another thread leaves it. */
  cas_strong_acq_rel(&next_ended[class], &begin, slab ? last : ended);
  return slab;
}

RESIDENT struct slab *adopt_from_ended(struct owner *owner, unsigned class) {
  /* acquire: the owner, as owners_first; pairs with the exchange above. */
  struct owner *begin = load_acquire(&next_ended[class]);
  bool is_in_vain = !begin && !(load_relaxed(&orphan_mask) >> class & 1); /* late is soon enough */
  return LIKELY(is_in_vain) ? NULL : adopt_next(owner, class, begin);
}

/* ---- Route P --------------------------------------------------------------------------------- */

struct route_p route_p = {.refusal_ns = 200000, .idle_ns = 150000, .remote_min = 8};

/* An owner that wants to adopt, another that has slabs, the class, and the time. */
struct wish {
  struct owner *owner, *candidate;
  unsigned class;
  uint64_t now_ns;
};

static bool is_blocked(const struct wish *wish, enum counter why) {
  count(&wish->owner->counters, why);
  return false;
}

/* The conditions on the slab itself. */
static bool may_take(const struct slab *slab, const struct wish *wish) {
  unsigned remote = slab_count_remote(slab);
  if (wish->now_ns - slab->edge_ns < route_p.refusal_ns)
    return is_blocked(wish, COUNT_route_p_blocked_refusal);
  if (remote < route_p.remote_min && remote != slab->capacity)
    return is_blocked(wish, COUNT_route_p_blocked_few);
  return slab != wish->candidate->bins[wish->class].current && !slab->is_listed;
}

/* Latch of the candidate. The first of a few queued slabs that may be taken, or NULL; the others
 * stay. */
static struct slab *choose_queued(const struct wish *wish) {
  struct slab *refused = NULL, *chosen = NULL, *slab;
  for (unsigned probe = 0; !chosen && probe < ROUTE_P_PROBES; probe++) {
    if (!(slab = pending_next(wish->candidate, wish->class))) break;
    if (load_relaxed(&slab->owner) != wish->candidate)
      pending_drain(slab, wish->candidate); /* sends it on */
    else if (may_take(slab, wish))
      chosen = slab;
    else
      pending_set_aside(slab, &refused);
  }
  pending_put_back_all(refused, wish->candidate);
  return chosen;
}

/* The conditions on the candidate, cheapest first. */
static bool may_adopt(const struct wish *wish) {
  if (owner_is_named(wish->owner)) return false;
  return owner_idled(wish->candidate, wish->now_ns, route_p.idle_ns) ||
         is_blocked(wish, COUNT_route_p_blocked_idle);
}

static struct slab *adopt_queued(const struct wish *wish) {
  struct owner *candidate = wish->candidate;
  if (!may_adopt(wish) || !latch_try(candidate)) return NULL;
  struct slab *slab = take_over(choose_queued(wish), candidate, wish->owner);
  latch_give(candidate);
  return slab;
}

struct slab *adopt_route_p(struct owner *owner, unsigned class) {
  struct wish wish = {owner, owner, class, 0};
  for (unsigned probe = 0; probe < ROUTE_P_PROBES; probe++) {
    wish.candidate = owner_after(wish.candidate);
    if (wish.candidate == owner) break;
    if (!(load_relaxed(&wish.candidate->ready_mask) >> class & 1)) continue;
    if (!wish.now_ns) wish.now_ns = os_now_ns();
    struct slab *slab = adopt_queued(&wish);
    if (!slab || !pending_drain(slab, owner)) continue;
    count(&owner->counters, COUNT_route_p_allowed);
    return slab;
  }
  return NULL;
}

/* ---- sweeping -------------------------------------------------------------------------------- */

/* Releases wholly free slabs, which are last in the partial list; returns the unused part of the
 * budget. */
static size_t release_listed(struct owner *owner, unsigned class, size_t slabs_max) {
  const struct bin *bin = &owner->bins[class];
  struct slab *slab = bin->free_count ? bin->partial->previous : NULL;
  for (uint32_t left = bin->free_count; left && slabs_max; left--, slabs_max--) {
    struct slab *previous = slab->previous;
    slab_try_release(slab, owner);
    slab = previous;
  }
  return slabs_max;
}

size_t owner_drain_all(struct owner *owner, size_t slabs_max) {
  for (uint64_t ready = load_relaxed(&owner->ready_mask); ready; ready &= ready - 1) {
    struct slab *slab;
    for (; slabs_max && (slab = pending_next(owner, lowest_bit(ready))); slabs_max--)
      pending_drain(slab, owner);
  }
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    if (owner->bins[class].free_count) slabs_max = release_listed(owner, class, slabs_max);
  return slabs_max;
}

/* Remote frees wait in the queues, and a queued slab cannot be released, so the queues are drained
 * before. */
size_t owner_release_free_slabs(struct owner *owner, size_t slabs_max) {
  size_t slabs_left = owner_drain_all(owner, slabs_max);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct slab *current = owner->bins[class].current;
    if (!current) continue;
    if (current->free_local != current->capacity) slab_collect(current, owner);
    if (current->free_local == current->capacity) slab_try_release(current, owner);
  }
  return slabs_left;
}

void owner_collect_all(struct owner *owner) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct bin *bin = &owner->bins[class];
    pending_drain_class(owner, class, UINT64_MAX);
    if (bin->current) slab_collect(bin->current, owner);
    for (struct slab *slab = bin->partial, *next; slab; slab = next) {
      next = slab->next;
      slab_collect(slab, owner);
    }
  }
}

/* Classes of which another owner could adopt a slab here. */
static uint64_t classes_on_offer(const struct owner *owner) {
  uint64_t classes = load_seq(&owner->ready_mask);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    if (owner->bins[class].partial || owner->bins[class].current) classes |= UINT64_C(1) << class;
  return classes;
}

static void change_state(struct owner *owner, enum owner_state state) {
  /* seq: the state before the ready mask is read; pairs with push in pending.c. */
  store_seq(&owner->state, state);
  if (!owner_is_named(owner)) orphan_mask_add(classes_on_offer(owner));
}

void owner_park(struct owner *owner) {
  change_state(owner, OWNER_PARKED);
  purge_want();
}

void owner_rest(struct owner *owner) {
  owner_release_free_slabs(owner, SIZE_MAX);
  change_state(owner, OWNER_DORMANT);
  purge_want();
}

/* In steps, between which its thread may take the latch. */
static void give_pages(struct owner *owner, struct purge *purge, uint32_t age_ms) {
  for (bool is_done = false; !is_done && latch_try(owner);) {
    is_done = !is_adoptable(owner) || pages_scan(owner, purge, age_ms) || !purge->calls_left;
    latch_give(owner);
  }
}

bool owner_sweep(struct owner *owner, uint64_t now_ns, struct purge *purge) {
  bool is_running = load_relaxed(&owner->state) == OWNER_RUNNING;
  if (is_running && !owner_idled(owner, now_ns, purge->decay_ms * UINT64_C(1000000))) return false;
  if (!latch_try(owner)) return false;
  uint32_t age_ms = is_running ? purge->decay_ms : 0;
  if (load_relaxed(&owner->state) != OWNER_LOST) {
    owner->free_age_ms = age_ms;
    purge->slabs_left = owner_release_free_slabs(owner, purge->slabs_left);
    if (!purge->slabs_left) purge->work_remains = purge->is_cut = true;
    owner->free_age_ms = 0;
    if (load_relaxed(&owner->state) == OWNER_RUNNING) change_state(owner, OWNER_DORMANT);
  }
  latch_give(owner);
  give_pages(owner, purge, age_ms);
  return true;
}

void owners_collect_ended(void) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all) {
    if (load_relaxed(&owner->state) != OWNER_PARKED || !latch_try(owner)) continue;
    owner_collect_all(owner);
    latch_give(owner);
  }
}
