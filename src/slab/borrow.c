#include "slab/borrow.h"

#include "slab/adopt.h"
#include "slab/pending.h"
#include "slab/slab.h"

/* Other owners that one slow path asks, far ones only before it makes a slab, and if they idle; and
 * queued slabs of each. */
enum { PROBES = 8, PROBES_FOR_A_SLAB = 64, SLABS_A_VISIT = 8 };

/* Whether the owner may have blocks of the class; then this thread holds its latch. */
RESIDENT static bool visit(struct owner *lender, unsigned class, bool needs_slab, bool is_far) {
  uint64_t classes = load_relaxed(&lender->ready_mask);
  if (needs_slab) classes |= load_relaxed(&lender->spare_mask);
  if (!(classes >> class & 1) || load_relaxed(&lender->state) == OWNER_LOST) return false;
  return (!is_far || owner_idled(lender, os_now_ns(), route_p.idle_ns)) && latch_try(lender);
}

static unsigned take_returned(struct slab *slab, struct owner *lender, void **blocks,
                              unsigned wanted) {
  bool was_listed = slab->is_listed;
  if (was_listed) slab_unlist(slab, lender); /* the list counts the wholly free */
  unsigned taken = slab_lend(slab, lender, blocks, wanted);
  if (was_listed && slab->free_local) slab_list(slab, lender);
  return taken;
}

/* A wholly free slab whose owner has others is more useful in the pool: the rest of each loan would
 * lie with an owner that may sleep. */
static bool release_spare(struct slab *slab, struct owner *lender) {
  return slab->free_local == slab->capacity && lender->bins[slab->class].partial_count > 1 &&
         slab_try_release(slab, lender);
}

/* Blocks that the owner freed itself, for a thread that would need another slab: the owner may soon
 * want them back. */
static unsigned lend_listed(struct owner *lender, unsigned class, void **blocks, unsigned wanted) {
  unsigned lent = 0, probes = 0;
  struct slab *slab = lender->bins[class].partial;
  while (slab && lent < wanted && probes++ < SLABS_A_VISIT) {
    struct slab *next = slab->next;
    if (slab_reusable(slab)) lent += take_returned(slab, lender, blocks + lent, wanted - lent);
    slab = next;
  }
  if (!slab && lent < wanted) owner_set_spare(lender, class, false);
  return lent;
}

static unsigned lend(struct owner *lender, unsigned class, void **blocks, unsigned wanted,
                     bool needs_slab) {
  unsigned lent = 0;
  for (unsigned probe = 0; lent < wanted && probe < SLABS_A_VISIT; probe++) {
    struct slab *slab = pending_next(lender, class);
    if (!slab) break;
    if (pending_drain(slab, lender) && !release_spare(slab, lender))
      lent += take_returned(slab, lender, blocks + lent, wanted - lent);
  }
  if (needs_slab && lent < wanted) lent += lend_listed(lender, class, blocks + lent, wanted - lent);
  return lent;
}

RESIDENT unsigned borrow_blocks(const struct owner *borrower, unsigned class, void **blocks,
                                unsigned wanted) {
  const struct slab *current = borrower->bins[class].current;
  bool needs_slab = !current || !current->free_local;
  unsigned borrowed = 0, probes = 0;
  struct owner *lender = owner_after(borrower);
  unsigned most = needs_slab && !borrower->bins[class].partial ? PROBES_FOR_A_SLAB : PROBES;
  /* Once it has some, no slab is made. */
  for (; lender != borrower && borrowed < wanted && probes < (borrowed ? PROBES : most); probes++) {
    if (visit(lender, class, needs_slab, probes >= PROBES)) {
      borrowed += lend(lender, class, blocks + borrowed, wanted - borrowed, needs_slab);
      latch_give(lender);
    }
    lender = owner_after(lender);
  }
  return borrowed;
}
