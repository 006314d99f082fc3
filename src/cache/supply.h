/* supply.h: the supply ladder: the sources of a class's free blocks, one rung after the other. */
#ifndef HAK_CACHE_SUPPLY_H
#define HAK_CACHE_SUPPLY_H

#include "cache/heap.h"

/* The users: a heap's magazine, a new thread that the starter heap serves, a quarantine, a named heap. */
enum { FOR_MAGAZINE = 1, FOR_STARTER = 2, FOR_HARDENED = 4, FOR_NAMED = 8, FOR_ALL = 15 };

/* The counter of a rung's hits, beside its own. */
enum supply_kind {
  SUPPLY_OWN,   /* the slab at hand: no other counter */
  SUPPLY_REUSE, /* a must-reuse hit */
  SUPPLY_LOAN,  /* a must-reuse hit on blocks whose slab stays another owner's */
  SUPPLY_NEW,   /* a new slab forced */
  SUPPLY_AGAIN, /* the ladder is climbed once more: counts as the rung that serves then */
};

/* RUNG(name, counter, kind, users, touches, "what it gives"): the first rung that has blocks serves.  `touches`: it may touch fresh
 * pages. Neither such a rung nor a loan completes the batch of rungs above: a smaller batch is better. */
#define SUPPLY_LADDER                                                                              \
  RUNG(current, refill_current, OWN, FOR_ALL, false, "blocks that came back to the current slab")  \
  RUNG(pending, refill_pending, REUSE, FOR_ALL, false, "slabs of its pending queue")               \
  RUNG(active_drain, refill_active_drain, REUSE, FOR_ALL, false,                                   \
       "remote frees of the current slab")                                                         \
  RUNG(partial, refill_partial, REUSE, FOR_ALL, false, "the class's partial list")                 \
  RUNG(starter, refill_starter, REUSE, FOR_MAGAZINE, true, "the starter heap's slab, taken along") \
  RUNG(ended, refill_orphan, REUSE, FOR_ALL, true, "a slab of an owner that ended or is dormant")  \
  RUNG(route_p, refill_route_p, REUSE, FOR_ALL, true, "a slab of an owner that is alive but idle") \
  RUNG(borrowed, refill_borrowed, LOAN, FOR_MAGAZINE, false, "blocks of other owners' slabs")      \
  RUNG(fresh, refill_current, OWN, FOR_ALL, true, "fresh blocks of the current slab")              \
  RUNG(fresh_listed, refill_partial, REUSE, FOR_ALL, true, "fresh blocks of a listed slab")        \
  RUNG(pool, refill_new, NEW, FOR_ALL, true, "the pool: slots and SuperSlabs that it has")         \
  RUNG(relieved, reliefs, AGAIN, FOR_MAGAZINE, true, "blocks in the thread's resting magazines")   \
  RUNG(system, refill_new, NEW, FOR_ALL, true, "a SuperSlab from the system")

struct supply { /* one visit; wants the owner's latch */
  struct owner *owner;
  struct heap *heap; /* the owner's, if its caches may be emptied too */
  unsigned class;
  unsigned users; /* the kind of user */
  void **blocks;  /* room for `wanted` */
  unsigned wanted;
  unsigned taken;
  bool is_relieved;
  bool is_alone; /* from a rung that touches pages: nothing is added */
};

/* A slab of the class with free blocks in `local`, made the bin's current one.  NULL when there is no memory, and when blocks were
 * borrowed: those are in blocks[taken] … then. */
struct slab *supply_climb(struct supply *supply);

/* Takes at least half of the wanted blocks, from several slabs when the first have few; fewer when only fresh ones are left. */
unsigned supply_fill(struct supply *supply);

#endif
