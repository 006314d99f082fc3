/* beside.h: checks the bytes on both sides of a block of a slab that is freed (hardened mode).
 *
 * Free memory there reads as zero, and a live block ends with its trailer.  Other bytes were
 * written by a user of the freed block, or of the one beside it: an underflow, or an overflow that
 * left the block's own trailer whole. */
#ifndef HAK_HARDENED_BESIDE_H
#define HAK_HARDENED_BESIDE_H

#include "base/atomic.h"
#include "base/compiler.h"

/* The bytes checked on each side. */
enum { BESIDE_BYTES = 64 };

/* Checks and reports. `live_words` are those of its SuperSlab (live.h). The block is being freed:
 * its bit is clear. */
void beside_check(uintptr_t freed, unsigned class, ATOMIC(uint64_t) *live_words);

#endif
