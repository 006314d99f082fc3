/* big.h: Big blocks, above 1 MiB: how they are counted, and how they move by moving pages; and how
 * Large and Big blocks grow and shrink where they are, from one tier into the other too: both are
 * ranges.
 *
 * Taken and given as Large ones are (ranges/large.h). The owner map entry of a live block is
 * MAP_ENTRY_BIG_LIVE, of a freed one MAP_ENTRY_BIG_FREE. */
#ifndef HAK_RANGES_BIG_H
#define HAK_RANGES_BIG_H

#include "ranges/range.h"

/* A guarded block is a hardened one in any mode. */
#define MAP_ENTRY_GUARDED map_entry(MAP_TAG_UNOWNED | MAP_HARDENED, MAP_CLASS_BIG)
#define MAP_ENTRY_BIG_LIVE map_entry(MAP_TAG_UNOWNED | window.hardened_bit, MAP_CLASS_BIG)
#define MAP_ENTRY_BIG_FREE map_entry(MAP_TAG_NONE | window.hardened_bit, MAP_CLASS_BIG)

size_t big_usable_bytes(uintptr_t block);
/* The usable size of a block for `bytes`. */
size_t big_good_bytes(size_t bytes);
/* Moves the first `bytes` of a live block to a fresh one of at least that size, by moving whole
 * pages, so that it begins at `block` from now on: in its page where the source did. False when the
 * system cannot (then copy). *target becomes 0 when the system has lost it, so that the block no
 * longer exists. */
bool big_move_pages(uintptr_t *target, uintptr_t block, uintptr_t source, size_t bytes,
                    struct counters *counters);

/* Makes a part of a block of any size read as zero. */
void big_clear(uintptr_t address, size_t bytes);

/* Notes that the range is a live Big block; that it no longer is, false if it was not one. */
void big_note_taken(size_t granule, size_t requested_bytes, struct counters *counters);
bool big_note_freed(size_t granule, struct counters *counters);
/* Adds to, or subtracts from, the live Big blocks' bytes and number. */
void big_count(int64_t bytes, int64_t blocks);

/* Changes a live block to `size` bytes, more than MID_MAX_BYTES; false when its right neighbour is
 * live, or it would have to move. */
bool resize_in_place(uintptr_t block, size_t size, struct counters *counters);

#endif
