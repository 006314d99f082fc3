/* beside.h: what lies on both sides of a block of a slab that is freed (hardened mode).
 *
 * Free memory there reads as zero, and a live block ends with its trailer.  What does not was written to by the program that had the
 * block that is freed, or the one beside it: an underflow, or an overflow that left the block's own trailer whole. */
#ifndef HAK_HARDENED_BESIDE_H
#define HAK_HARDENED_BESIDE_H

#include "base/atomic.h"
#include "base/compiler.h"

/* So far on each side. */
enum { BESIDE_BYTES = 64 };

/* Says so.  `live_words` are those of its SuperSlab (live.h).  The block is being freed: its bit is clear. */
void beside_check(uintptr_t freed, unsigned class, ATOMIC(uint64_t) *live_words);

#endif
