/* range_purge.h: giving free ranges back to the system: by age and amount, and to offset the
 * process's growth. */
#ifndef HAK_RANGES_RANGE_PURGE_H
#define HAK_RANGES_RANGE_PURGE_H

#include "purge/purge.h"
#include "ranges/arena.h"

/* Gives DIRTY ranges back that are old enough, the oldest first; with purge->give_addresses unmaps
 * all free ones. */
void range_purge(struct purge *purge, struct counters *counters);

/* The process has grown by `granules` granules of the arena: as many free ones of it go back, if
 * earned (docs/decisions/0025). */
void range_offset_growth(struct arena *arena, size_t granules, struct counters *counters);

/* Asks the system to take a range that is in no set; returns the range's kind afterwards. */
enum range_kind range_give_back(size_t first, enum range_kind kind, bool give_addresses);
/* Cuts an extracted range after `part` granules, where it may be cut: two parts, each as if it had
 * been extracted by itself. */
void range_divide(size_t first, size_t part, struct counters *counters);
/* Puts a range that is in no set (LIVE or BUSY) into one; `purged` of its granules went back
 * unused, if it is not DIRTY. */
void range_put_back(size_t first, enum range_kind kind, size_t purged, struct counters *counters);

#endif
