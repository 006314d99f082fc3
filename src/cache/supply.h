/* supply.h: the supply ladder: the sources of a class's free blocks, one rung after the other. */
#ifndef HAK_CACHE_SUPPLY_H
#define HAK_CACHE_SUPPLY_H

#include "cache/heap.h"

/* The users: a heap's magazine, a new thread that the starter heap serves, a quarantine, a named
 * heap. */
enum { FOR_MAGAZINE = 1, FOR_STARTER = 2, FOR_HARDENED = 4, FOR_NAMED = 8, FOR_ALL = 15 };

/* The counter of a rung's hits, beside its own. */
enum supply_kind {
  SUPPLY_OWN,   /* the slab at hand: no other counter */
  SUPPLY_REUSE, /* a must-reuse hit */
  SUPPLY_LOAN,  /* a must-reuse hit on blocks whose slab stays another owner's */
  SUPPLY_NEW,   /* a new slab forced */
  SUPPLY_AGAIN, /* the ladder is climbed once more: counts as the rung that serves then */
};

/* RUNG(function, counter, kind, users, touches, "what it gives"): the first rung that has blocks
 * serves.  `touches`: it may touch fresh pages. Neither such a rung nor a loan completes the batch
 * of rungs above: a smaller batch is better. */
#define SUPPLY_LADDER                                                              \
  RUNG(find_current, COUNT_refill_current, SUPPLY_OWN, FOR_ALL, false,             \
       "blocks that came back to the current slab")                                \
  RUNG(find_pending, COUNT_refill_pending, SUPPLY_REUSE, FOR_ALL, false,           \
       "slabs of its pending queue")                                               \
  RUNG(find_active_drain, COUNT_refill_active_drain, SUPPLY_REUSE, FOR_ALL, false, \
       "remote frees of the current slab")                                         \
  RUNG(find_partial, COUNT_refill_partial, SUPPLY_REUSE, FOR_ALL, false,           \
       "the class's partial list")                                                 \
  RUNG(find_starter, COUNT_refill_starter, SUPPLY_REUSE, FOR_MAGAZINE, true,       \
       "the starter heap's slab, taken along")                                     \
  RUNG(find_ended, COUNT_refill_orphan, SUPPLY_REUSE, FOR_ALL, true,               \
       "a slab of an owner that ended or is dormant")                              \
  RUNG(find_route_p, COUNT_refill_route_p, SUPPLY_REUSE, FOR_ALL, true,            \
       "a slab of an owner that is alive but idle")                                \
  RUNG(find_borrowed, COUNT_refill_borrowed, SUPPLY_LOAN, FOR_MAGAZINE, false,     \
       "blocks of other owners' slabs")                                            \
  RUNG(find_fresh, COUNT_refill_current, SUPPLY_OWN, FOR_ALL, true,                \
       "fresh blocks of the current slab")                                         \
  RUNG(find_fresh_listed, COUNT_refill_partial, SUPPLY_REUSE, FOR_ALL, true,       \
       "fresh blocks of a listed slab")                                            \
  RUNG(find_pool, COUNT_refill_new, SUPPLY_NEW, FOR_ALL, true,                     \
       "the pool: slots and SuperSlabs that it has")                               \
  RUNG(find_relieved, COUNT_reliefs, SUPPLY_AGAIN, FOR_MAGAZINE, true,             \
       "blocks in the thread's resting magazines")                                 \
  RUNG(find_system, COUNT_refill_new, SUPPLY_NEW, FOR_ALL, true, "a SuperSlab from the system")

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

/* A slab of the class with free blocks in `local`, made the bin's current one.  NULL when there is
 * no memory, and when blocks were borrowed: those are in blocks[taken] … then. */
struct slab *supply_climb(struct supply *supply);

/* Takes at least half of the wanted blocks, from several slabs when the first have few; fewer when
 * only fresh ones are left. */
unsigned supply_fill(struct supply *supply);

#endif
