/* empty_slabs.h: slabs that went back to the pool and still are what they were: the next one of their class needs no set-up.
 *
 * A stack for each class, youngest on top; more than a class keeps are for all classes. */
#ifndef HAK_POOL_EMPTY_SLABS_H
#define HAK_POOL_EMPTY_SLABS_H

#include "pool/purge.h"
#include "pool/slots.h"

/* False, and nothing done, when the class keeps enough. */
bool empty_slabs_push(struct slot_run run, unsigned class, struct counters *counters);

/* The youngest of the class, if it has any. */
struct slot_run empty_slabs_pop(unsigned class);

/* Makes one of any class that has at least so many slots UNUSED: true when there was one. */
bool empty_slabs_open_one(unsigned slot_count);

/* All that are old enough become UNUSED. */
void empty_slabs_age(struct purge *purge);

uint64_t empty_slabs_bytes(void);

#endif
