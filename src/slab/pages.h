/* pages.h: system pages inside slabs that are in use, all of whose blocks are free (0023).
 *
 * One surviving block in a hundred pins nearly every slab of its class, but few of their pages.
 *
 *      in use ──all blocks free at a scan──▶ waiting ──a decay time later──▶ given ──▶ in use
 *         ▲                                     │          madvise             block taken
 *         └────── a block of the slab taken ────┘
 *
 * While no blocks are taken from a slab its free pages stay free: so taking a block clears the
 * waiting pages, frees cost nothing, and the age is exact. A block in a magazine or in `remote`
 * does not count as free here. Given pages stay counted as committed: their blocks may be taken
 * without checking a limit. */
#ifndef HAK_SLAB_PAGES_H
#define HAK_SLAB_PAGES_H

#include "purge/purge.h"
#include "slab/owner.h"

/* All functions need the latch. */

/* Most system calls in one scan: its thread may come and wait for the latch. About a
 * millisecond. */
enum { PAGE_CALLS_A_SCAN = 128 };

/* Scans as many of the owner's slabs that have free blocks as the purge may, going on where the
 * last scan ended: free pages begin to wait, as if they had been free for `age_ms`, and old ones go
 * back. Work remains when some are left; false when that is because the calls were used up: there
 * is more to give back at once. */
bool pages_scan(struct owner *owner, struct purge *purge, uint32_t age_ms);

/* Blocks of a slab with free pages were taken. */
COLD void pages_note_taken(struct slab *slab, void *const *blocks, unsigned block_count);

#endif
