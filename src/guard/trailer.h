/* trailer.h: the canary of hardened blocks (HAKMEM_HARDEN), which also knows what was asked for, and by whom.
 *
 *   block  [ requested bytes | slack: SLACK_BYTE … | trailer, 8 bytes ]
 *   trailer                                          | slack bytes : 16 | maker : 2 | check : 46 |
 *
 * The check is a keyed hash of the block's address, slack and maker, so that it can be neither guessed nor
 * copied from another block.  A write behind the requested bytes, of a single zero too, is seen when
 * the block is freed, resized or asked for its size. */
#ifndef HAK_GUARD_TRAILER_H
#define HAK_GUARD_TRAILER_H

#include "base/atomic.h"
#include "base/compiler.h"

enum { TRAILER_BYTES = 8, SLACK_MAX_BYTES = UINT16_MAX };

/* What made a block; what frees it must be of the same. */
enum maker { MADE_BY_MALLOC, MADE_BY_NEW, MADE_BY_NEW_ARRAY };

/* Draws the key; once, before the first block. */
void trailer_init(void);

/* Writes slack and trailer of a block of `capacity_bytes`, trailer included; the slack is at most SLACK_MAX_BYTES. */
void trailer_write(uintptr_t block, size_t capacity_bytes, size_t requested_bytes,
                   enum maker maker);
/* Takes the trailer's word for it: the requested bytes, or false when the trailer was overwritten. */
bool trailer_read(uintptr_t block, size_t capacity_bytes, size_t *requested_bytes);
/* What made the block; of a trailer that trailer_read takes. */
enum maker trailer_maker(uintptr_t block, size_t capacity_bytes);
/* The first byte behind the requested ones that was written, counted from the block's begin; 0 when none. */
size_t trailer_find_overflow(uintptr_t block, size_t capacity_bytes, size_t requested_bytes);

/* The first byte that is not 0, counted from `begin`; `bytes` when there is none.  Whole words, aligned. */
size_t find_nonzero(uintptr_t begin, size_t bytes);

#endif
