/* slab_set.h: finds the slabs of one heap: a hash table, by SuperSlab, of the slots at which its slabs begin. Full slabs are in no list
 * of their owner (slab/owner.h), and to free all of a heap's blocks they must be found. Slabs that the heap has given up stay in the
 * table until it grows, so an entry is trusted only if the slab's owner agrees.
 *
 *   law: every slab of the owner is in its table; at least one row in four is empty
 *
 * Under the owner's latch. */
#ifndef HAK_NAMED_SLAB_SET_H
#define HAK_NAMED_SLAB_SET_H

#include "slab/owner.h"

/* One SuperSlab. */
struct slab_row {
  uint32_t place; /* its chunk + 1; 0: an empty row */
  uint32_t slots; /* bit n: a slab begins at slot n, or did */
};

enum { FEW_ROW_BITS = 2 };

struct slab_set {
  struct slab_row *table; /* NULL: the few rows are enough */
  uint32_t table_bits;    /* log2 of its rows */
  uint32_t used;          /* rows that are not empty */
  struct slab_row few[1 << FEW_ROW_BITS];
};

/* Makes room for one more slab; false without memory. */
bool slab_set_make_room(struct slab_set *set, const struct owner *owner);
/* Adds a slab that the owner has got, when there is room. */
void slab_set_add(struct slab_set *set, const struct slab *slab);

/* The next slab of the owner, from *next, which is advanced from 0; NULL after the last. */
struct slab *slab_set_next(const struct slab_set *set, const struct owner *owner, size_t *next);

/* Called when the owner has no slabs any more: drops the table. */
void slab_set_clear(struct slab_set *set);

/* In a forked child, while it has one thread. */
void slab_set_after_fork(void);

#endif
