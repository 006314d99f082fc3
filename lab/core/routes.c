/* SPDX-License-Identifier: MIT
 *
 * routes.c: see routes.h.
 */
#include "routes.h"

#include "remote.h"

#include <sched.h>
#include <time.h>

enum {
  PENDING_BUDGET = 4,      /* pages drained in one visit of the supply ladder */
  OWNERS_LOOKED_AT = 8,    /* by one visit of Route P */
  CANDIDATES_LOOKED_AT = 8 /* of one owner's queue */
};

/* Newest first; owners are never unlinked.  By number: pages know their owners by it. */
static struct owner *_Atomic owners;
static struct owner *_Atomic owner_of_number[1 << 12];

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_home(const struct page *page, const struct owner *owner) {
  return atomic_load_explicit(&page->home, memory_order_relaxed) == owner->recycled.number;
}

static bool latch_try(struct owner *owner) {
  return !atomic_load_explicit(&owner->latch, memory_order_relaxed) &&
         !atomic_exchange_explicit(&owner->latch, true, memory_order_acquire);
}

/* Takes the owner's own latch; Route S needs none, as it has no adopters. */
static void latch_take(struct owner *owner, const struct route_policy *policy) {
  if (!policy->adopts) {
    return;
  }
  owner->recycled.counters->latches++;
  while (!latch_try(owner)) {
    sched_yield(); /* an adopter is at work, or was interrupted at it */
  }
}

static void latch_give(struct owner *owner, const struct route_policy *policy) {
  if (policy->adopts) {
    atomic_store_explicit(&owner->latch, false, memory_order_release);
  }
}

/* Only the owner writes it; atomic, as other threads read it. */
static void partial_count_add(struct owner *owner, unsigned class, uint32_t step) {
  uint32_t count = atomic_load_explicit(&owner->partial_count[class], memory_order_relaxed);
  atomic_store_explicit(&owner->partial_count[class], count + step, memory_order_relaxed);
}

static void partial_push(struct owner *owner, struct page *page) {
  page->is_listed = true;
  page->next_partial = owner->partial[page->class];
  owner->partial[page->class] = page_id_of(page);
  partial_count_add(owner, page->class, 1);
}

static struct page *partial_pop(struct owner *owner, unsigned class) {
  page_id first = owner->partial[class];
  if (first == 0) {
    return NULL;
  }
  struct page *page = &pages[first];
  page->is_listed = false;
  owner->partial[class] = page->next_partial;
  partial_count_add(owner, class, (uint32_t)-1);
  return page;
}

/* The 0 -> 1 edge.  No thread adopts the page meanwhile: it is not in a queue yet. */
static void enqueue(struct page *page, const struct route_policy *policy,
                    struct counters *counters) {
  if (atomic_exchange_explicit(&page->is_queued, true, memory_order_acq_rel)) {
    return; /* still queued; its owner has drained it as its active page */
  }
  uint32_t home = atomic_load_explicit(&page->home, memory_order_relaxed);
  struct owner *owner = atomic_load_explicit(&owner_of_number[home], memory_order_acquire);
  unsigned class = page->class;
  page->queued_ns = policy->adopts ? now_ns() : 0;
  uint32_t seen = atomic_load_explicit(&owner->pending[class], memory_order_relaxed);
  for (;;) {
    atomic_store_explicit(&page->next_queued, seen, memory_order_relaxed);
    if (atomic_compare_exchange_weak_explicit(&owner->pending[class], &seen, page_id_of(page),
                                              memory_order_release, memory_order_relaxed)) {
      break;
    }
    counters->cas_retries++;
  }
  counters->queued++;
  if (policy->adopts) { /* the rest is for those who look */
    atomic_fetch_add_explicit(&owner->pending_count[class], 1, memory_order_relaxed);
    if ((atomic_load_explicit(&owner->ready, memory_order_relaxed) >> class & 1) == 0) {
      atomic_fetch_or_explicit(&owner->ready, 1u << class, memory_order_relaxed);
    }
  }
}

/* Moves the remote blocks to the local list; how many there are now. */
static uint32_t collect(struct page *page) {
  block_id block = remote_take_all(page);
  while (block != 0) {
    block_id next = next_of(block);
    set_next(block, page->local);
    page->local = block;
    page->local_count++;
    block = next;
  }
  return page->local_count;
}

/* Ends a page's stay in a queue; how many blocks its local list has now. */
static uint32_t drain(struct page *page, struct owner *owner, const struct route_policy *policy) {
  owner->recycled.counters->drained++;
  if (policy->adopts) {
    atomic_fetch_sub_explicit(&owner->pending_count[page->class], 1, memory_order_relaxed);
  }
  /* Before the blocks are taken, so that a later push can queue the page again. */
  atomic_exchange_explicit(&page->is_queued, false, memory_order_acq_rel);
  return collect(page);
}

/* The next page of the pending queue, still marked as queued. */
static struct page *next_taken(struct owner *owner, unsigned class) {
  if (owner->taken[class] == 0 &&
      atomic_load_explicit(&owner->pending[class], memory_order_relaxed) != 0) {
    owner->taken[class] = atomic_exchange_explicit(&owner->pending[class], 0, memory_order_acquire);
  }
  if (owner->taken[class] == 0) {
    return NULL;
  }
  struct page *page = &pages[owner->taken[class]];
  owner->taken[class] = atomic_load_explicit(&page->next_queued, memory_order_relaxed);
  return page;
}

static void put_back(struct owner *owner, struct page *page) {
  atomic_store_explicit(&page->next_queued, owner->taken[page->class], memory_order_relaxed);
  owner->taken[page->class] = page_id_of(page);
}

static struct page *activate(struct owner *owner, struct page *page) {
  owner->active[page->class] = page;
  return page;
}

/* Steps 1 to 3 of the supply ladder. */
static struct page *route_s_pass(struct owner *owner, unsigned class,
                                 const struct route_policy *policy) {
  struct page *active = owner->active[class];
  struct page *found = NULL;
  for (unsigned i = 0; i < PENDING_BUDGET; i++) {
    struct page *page = next_taken(owner, class);
    if (page == NULL) {
      break;
    }
    /* A page that we have found may have been queued anew meanwhile. */
    if (drain(page, owner, policy) == 0 || page->is_listed || page == found) {
      continue;
    }
    if (found == NULL) {
      found = page;
    } else if (page == active) {
      partial_push(owner, found); /* the active page goes on */
      found = page;
    } else {
      partial_push(owner, page);
    }
  }
  if (found != NULL) {
    return activate(owner, found);
  }
  if (active != NULL && collect(active) != 0) {
    owner->recycled.counters->active_drains++;
    return active;
  }
  found = partial_pop(owner, class);
  if (found != NULL) {
    owner->recycled.counters->partial_hits++;
    return activate(owner, found);
  }
  return NULL;
}

/* Observed, not announced: an owner idles when its count of slow paths has not changed since
 * another thread read it, at least `idle_ns` ago. */
static bool is_idle(struct owner *owner, uint64_t now, const struct route_policy *policy) {
  uint64_t slow_paths = atomic_load_explicit(&owner->slow_paths, memory_order_relaxed);
  if (atomic_load_explicit(&owner->seen_slow_paths, memory_order_relaxed) != slow_paths) {
    atomic_store_explicit(&owner->seen_ns, now, memory_order_relaxed);
    atomic_store_explicit(&owner->seen_slow_paths, slow_paths, memory_order_relaxed);
    return false;
  }
  uint64_t seen_ns = atomic_load_explicit(&owner->seen_ns, memory_order_relaxed);
  return now >= seen_ns + policy->idle_ns;
}

static bool is_worth_it(const struct page *page, const struct owner *owner, uint64_t now,
                        const struct route_policy *policy, struct counters *counters) {
  uint32_t blocks = remote_announced(atomic_load_explicit(&page->remote, memory_order_relaxed));
  if (page == owner->active[page->class] ||
      (blocks < policy->least_blocks && blocks < page->block_count)) {
    counters->blocked_few++;
    return false;
  }
  if (now < page->queued_ns + policy->refusal_ns) {
    counters->blocked_refusal++;
    return false;
  }
  return true;
}

/* One page out of another owner's queue, under its latch; it is the adopter's when it is
 * drained. */
static struct page *adopt_from(struct owner *other, unsigned class, uint64_t now,
                               struct owner *adopter, const struct route_policy *policy) {
  struct page *found = NULL, *passed_over[CANDIDATES_LOOKED_AT];
  unsigned count = 0;
  while (found == NULL && count < CANDIDATES_LOOKED_AT) {
    struct page *page = next_taken(other, class);
    if (page == NULL) {
      break;
    }
    if (is_worth_it(page, other, now, policy, adopter->recycled.counters)) {
      found = page;
    } else {
      passed_over[count++] = page;
    }
  }
  while (count > 0) {
    put_back(other, passed_over[--count]);
  }
  if (found != NULL) {
    atomic_store_explicit(&found->home, adopter->recycled.number, memory_order_relaxed);
    atomic_fetch_add_explicit(&adopter->pending_count[class], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&other->pending_count[class], 1, memory_order_relaxed);
    drain(found, adopter, policy);
  }
  return found;
}

static bool may_adopt_from(struct owner *other, unsigned class, uint64_t now,
                           const struct route_policy *policy, struct counters *counters) {
  if ((atomic_load_explicit(&other->ready, memory_order_relaxed) >> class & 1) == 0) {
    return false;
  }
  if (!is_idle(other, now, policy)) {
    counters->blocked_idle++;
    return false;
  }
  if (atomic_load_explicit(&other->partial_count[class], memory_order_relaxed) != 0 ||
      (int32_t)atomic_load_explicit(&other->pending_count[class], memory_order_relaxed) <=
          (int32_t)policy->above_pages) {
    counters->blocked_few++;
    return false;
  }
  return true;
}

static struct page *route_p_pass(struct owner *owner, unsigned class,
                                 const struct route_policy *policy) {
  struct counters *counters = owner->recycled.counters;
  uint64_t now = now_ns();
  struct owner *other = owner->next_of_all; /* everybody starts elsewhere */
  for (unsigned i = 0; i < OWNERS_LOOKED_AT; i++, other = other->next_of_all) {
    if (other == NULL) {
      other = atomic_load_explicit(&owners, memory_order_acquire);
    }
    if (other == owner) {
      return NULL;
    }
    if (!may_adopt_from(other, class, now, policy, counters) || !latch_try(other)) {
      continue;
    }
    struct page *page = adopt_from(other, class, now, owner, policy);
    latch_give(other, policy);
    if (page != NULL) {
      counters->adopted++;
      return activate(owner, page);
    }
  }
  return NULL;
}

static struct page *make_page(struct owner *owner, unsigned class) {
  struct chain blocks;
  struct page *page = page_make(class, owner->recycled.counters, &blocks);
  if (page == NULL) {
    return NULL;
  }
  page->local = blocks.first;
  page->local_count = blocks.count;
  atomic_store_explicit(&page->home, owner->recycled.number, memory_order_relaxed);
  return activate(owner, page);
}

static struct page *supply_pass(struct owner *owner, unsigned class,
                                const struct route_policy *policy) {
  atomic_store_explicit(&owner->slow_paths,
                        atomic_load_explicit(&owner->slow_paths, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  struct page *page = route_s_pass(owner, class, policy);
  if (page == NULL && policy->adopts) {
    /* Our own queue of the class is empty. */
    if ((atomic_load_explicit(&owner->ready, memory_order_relaxed) >> class & 1) != 0) {
      atomic_fetch_and_explicit(&owner->ready, ~(1u << class), memory_order_relaxed);
    }
    page = route_p_pass(owner, class, policy);
  }
  if (page != NULL) {
    owner->recycled.counters->reuses++;
    return page;
  }
  return make_page(owner, class);
}

block_id owner_take(struct owner *owner, unsigned class, const struct route_policy *policy) {
  struct page *page = owner->active[class];
  if (page == NULL || page->local == 0) {
    latch_take(owner, policy);
    page = supply_pass(owner, class, policy);
    latch_give(owner, policy);
    if (page == NULL) {
      return 0;
    }
  }
  block_id block = page->local;
  page->local = next_of(block);
  page->local_count--;
  return block;
}

static void give_local(struct page *page, block_id block) {
  set_next(block, page->local);
  page->local = block;
  page->local_count++;
}

/* An own page that is not the active one; false when it is ours no more. */
static bool give_own(struct owner *owner, struct page *page, block_id block,
                     const struct route_policy *policy) {
  latch_take(owner, policy);
  bool is_ours = is_home(page, owner); /* again: it may just have been adopted */
  if (is_ours) {
    give_local(page, block);
    if (!page->is_listed) {
      partial_push(owner, page);
    }
  }
  latch_give(owner, policy);
  return is_ours;
}

void owner_give(struct owner *owner, block_id block, const struct route_policy *policy) {
  struct page *page = page_of(block);
  if (page == owner->active[page->class]) {
    give_local(page, block);
    return;
  }
  if (is_home(page, owner) && give_own(owner, page, block, policy)) {
    return;
  }
  struct counters *counters = owner->recycled.counters;
  counters->remote_frees++;
  if (remote_push(page, block, 1, counters) == 0) {
    enqueue(page, policy, counters);
  }
}

void *owner_begin(struct recycler *recycler, struct counters *counters) {
  struct owner *owner = recycler_take(recycler, counters);
  if (!owner->is_registered) {
    owner->is_registered = true;
    atomic_store_explicit(&owner_of_number[owner->recycled.number], owner, memory_order_release);
    struct owner *first = atomic_load_explicit(&owners, memory_order_relaxed);
    do {
      owner->next_of_all = first;
    } while (!atomic_compare_exchange_weak_explicit(&owners, &first, owner, memory_order_acq_rel,
                                                    memory_order_acquire));
  }
  return owner;
}

uint64_t owners_count_free(void) {
  uint64_t count = 0;
  for (uint64_t number = 1; number <= pages_made(); number++) {
    count += chain_length(pages[number].local);
    count += chain_length(remote_first(atomic_load(&pages[number].remote)));
  }
  return count;
}
