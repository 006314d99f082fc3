/* superslab.h: SuperSlabs and their slots.
 *
 *   SuperSlab   one chunk of 2 MiB, aligned, cut into 32 slots of 64 KiB
 *   slots       1, 2 or 4 neighbours hold a slab: blocks of one size class (slab/record.h)
 *   record      `struct superslab`, apart from the data: in a chunk whose first and last 128 KiB
 *               are unmapped (map/window.h), so a program that writes beyond a block's ends
 *               meets those, and never a record
 *
 * Slot states:
 *
 *      UNUSED ──acquire_slots──▶ ACTIVE ──release_slots──▶ EMPTY ──acquire_slots──▶ ACTIVE
 *         ▲                                                  │
 *         └──────────── at a round, or when the class keeps enough ──┘
 *
 * A slot changes state only in the hands of its one holder: the thread that cleared its bit of the
 * UNUSED ones, took it as EMPTY, or owns it.  Records are never moved, and but for their bitmaps
 * never given back.
 *
 *   law: the slots of an EMPTY or ACTIVE slab are not UNUSED; a dirty slot is counted as
 *   committed (map/commit.h);
 *        a SuperSlab without addresses is in the hands of one thread, or wholly UNUSED and
 *        clean; or others have its
 *        addresses, and no thread ever takes it */
#ifndef HAK_POOL_SUPERSLAB_H
#define HAK_POOL_SUPERSLAB_H

#include "map/huge.h"
#include "pool/slot_index.h"

/* Hardened mode: a bit for every 16 bytes of a SuperSlab's lower half, set where a live block
 * begins.  Its blocks have 16 bytes at least, so the address alone tells the bit. */
enum { LIVE_UNIT_BYTES = 16, LIVE_WORDS = (int)(CHUNK_BYTES / 2 / LIVE_UNIT_BYTES / 64) };

struct superslab {
  size_t chunk;
  union {
    /* Low half: UNUSED, any thread may take it. High half: dirty, its pages may be resident. */
    ATOMIC(uint64_t) slots;
    struct {
      uint32_t unused, dirty;
    } half; /* for readers from outside */
  };
  ATOMIC(uint32_t) purged; /* bit set: pages were given back and not used since */
  bool is_mapped;          /* false: its address space was given back */
  bool is_ahead;           /* made by the helper thread, and no part of it used so far */
  ATOMIC(char) huge_state; /* LET_IN: all its pages are resident, or will be soon (map/huge.h) */
  ATOMIC(uint64_t) *live;  /* in hardened mode LIVE_WORDS, else NULL */
  ATOMIC(uint32_t) freed_ms[SLOTS_PER_SUPERSLAB]; /* of slots that are free: since when */
};

/* A SuperSlab's record and src/slab's records of its slabs (slab/record.h): at its end bitmaps, all
 * zero or of no meaning while all slots are UNUSED. */
enum {
  SUPERSLAB_RECORD_BYTES = 84160,
  SUPERSLAB_BITMAP_BYTES = 4096 + (int)(2 * CHUNK_BYTES / 64)
};

/* The chunk map's pointer to a range chunk carries this bit, a SuperSlab's does not. */
#define CHUNK_IS_RANGES ((uintptr_t)1)

/* The SuperSlab of a chunk that is one. */
INLINE struct superslab *superslab_of_chunk(size_t chunk) {
  ASSERT(!((uintptr_t)chunk_metadata(chunk) & CHUNK_IS_RANGES));
  return chunk_metadata(chunk);
}
INLINE struct superslab *superslab_of_granule(size_t granule) {
  return superslab_of_chunk(granule / GRANULES_PER_CHUNK);
}

/* Before a part of its pages is given back. */
INLINE void superslab_refuse_huge(struct superslab *superslab) {
  if (UNLIKELY(load_relaxed(&superslab->huge_state) == HUGE_LET_IN))
    huge_refuse(superslab->chunk, &superslab->huge_state);
}

/* All may be called from any thread; a SuperSlab that is given to one has no UNUSED slot: it is the
 * caller's. */

/* One at the window's frontier, no slot of it UNUSED; NULL without addresses or memory. Ahead: by
 * the helper thread. */
struct superslab *superslab_make(bool is_ahead);

/* Gives addresses to a SuperSlab without pages, if it has none. OS_OCCUPIED: a foreign mapping lies
 * there. */
enum os_map_result superslab_use_again(struct superslab *superslab, bool is_ahead);

/* Asks the helper thread for a SuperSlab in huge pages, which a growing heap is going to use: the
 * first touch of a huge page may take some milliseconds, for which no call should wait. */
void superslab_want_ahead(void);
extern ATOMIC(bool) superslab_is_wanted;

/* Gives its addresses back, and with them all pages; false when the system refuses. */
bool superslab_unmap(struct superslab *superslab);

/* Gives back the pages of its record's bitmaps, while all slots are in one hand, so that no slab
 * uses them. */
void superslab_purge_bitmaps(struct superslab *superslab);

#endif
