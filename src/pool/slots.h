/* slots.h: slots change hands.
 *
 * A thread that takes slots is their only holder until it returns them. All changes of `slots`,
 * except for a SuperSlab with a single holder, are made here, and noted in the index. */
#ifndef HAK_POOL_SLOTS_H
#define HAK_POOL_SLOTS_H

#include "base/counters.h"
#include "pool/superslab.h"

struct slot_run {
  struct superslab *superslab; /* NULL: none */
  unsigned first;
  bool is_empty; /* still the slab of its former class */
};

/* The run of UNUSED slots at the lowest address in SuperSlabs that are in use.  With `taken_bytes`
 * (map/commit.h) taken for it, any slots; with 0 those that are dirty. */
struct slot_run slots_take_run(unsigned slot_count, size_t taken_bytes, struct counters *counters);

/* All slots of the lowest SuperSlab of this kind, KIND_KEPT or KIND_CLEAN; NULL when there is
 * none. */
struct superslab *slots_take_whole(unsigned kind);

/* A run of a SuperSlab that is wholly the caller's; the others become UNUSED. */
struct slot_run slots_divide(struct superslab *superslab, unsigned slot_count, size_t taken_bytes);

/* Takes the UNUSED ones of these slots for the caller alone; returns them, and which of them are
 * dirty, as in `slots`. */
uint64_t slots_hold(struct superslab *superslab, uint32_t mask);

/* Lets all threads take these slots; freed_ms is when they became free. `purged` ones of them, all
 * dirty, become clean. */
void slots_return(struct superslab *superslab, uint32_t mask, uint32_t purged);

/* The law in superslab.h, as far as `slots` shows it. */
bool superslab_is_valid(const struct superslab *superslab, uint64_t slots);

#endif
