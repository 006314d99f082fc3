/* nothing.h: the result of malloc(0) in hardened mode: a unique address on a closed page.
 *
 * A region of closed pages outside the window, cut into units of NOTHING_UNIT_BYTES, with a bit for
 * each that is handed out.  Units are taken in a circle, so that an address is reused as late as
 * possible. A program that holds NOTHING_MAX of them gets small blocks from then on, as does one
 * where the system refuses the region. */
#ifndef HAK_HARDENED_NOTHING_H
#define HAK_HARDENED_NOTHING_H

#include "base/atomic.h"
#include "base/compiler.h"

enum { NOTHING_UNIT_BYTES = 16, NOTHING_MAX = 1 << 18, NOTHING_ALIGNMENT_MAX = 1024 };
#define NOTHING_BYTES ((size_t)NOTHING_MAX * NOTHING_UNIT_BYTES)

extern ATOMIC(uintptr_t) nothing_begin; /* 0 until there is a region */

INLINE bool nothing_covers(uintptr_t address) {
  uintptr_t begin = load_acquire(&nothing_begin); /* the bits; pairs with nothing_take */
  return UNLIKELY(begin != 0) && address - begin < NOTHING_BYTES;
}

/* An address that is a multiple of the alignment, a power of two, or 0. */
uintptr_t nothing_take(size_t alignment);

/* For an address that nothing_covers: whether it is handed out, with a report when not; `is_given`
 * takes it back. */
bool nothing_check(uintptr_t address, const char *verb, bool is_given);

#endif
