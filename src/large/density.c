#include "large/density.h"

#include "os/os.h"

/* A look is a system call: the first few come soon, as ranges that were merged meanwhile stay touched, then few are enough.
 * What was seen before counts seven times as much. */
enum { LOOK_EVERY_AT_FIRST = 4, LOOK_EVERY = 64, WEIGHT_DIVISOR = 8 };
/* Low when as many looks say less than an eighth, and until they say half: ranges that stay whole fill up slowly, as
 * no two blocks of a class are of one size. */
enum { DENSITY_PARTS = 256 };
enum { LOOKS_MIN = 8, LOW_PARTS = DENSITY_PARTS / 8, HIGH_PARTS = DENSITY_PARTS / 2 };

static ATOMIC(uint32_t) parts_resident; /* 0: none seen yet */
static ATOMIC(uint32_t) ranges_seen;
static ATOMIC(bool) is_low;

RESIDENT bool density_is_low(void) { return load_relaxed(&is_low); }

static uint32_t parts_of(size_t granule) {
  size_t bytes = (size_t)range_info(granule)->granules << GRANULE_SHIFT;
  return (uint32_t)(os_resident_bytes((void *)granule_address(granule), bytes) * DENSITY_PARTS /
                    bytes);
}

RESIDENT void density_note(size_t granule) {
  uint32_t ranges = fetch_add_relaxed(&ranges_seen, 1);
  uint32_t every = ranges < LOOKS_MIN * LOOK_EVERY_AT_FIRST ? LOOK_EVERY_AT_FIRST : LOOK_EVERY;
  if ((ranges + 1) % every) return; /* not at the first: a short process is not worth a look */
  uint32_t before = load_relaxed(&parts_resident), parts = parts_of(granule);
  if (before) parts = (before * (WEIGHT_DIVISOR - 1) + parts) / WEIGHT_DIVISOR;
  store_relaxed(&parts_resident, parts ? parts : 1);
  if (parts >= HIGH_PARTS)
    store_relaxed(&is_low, false);
  else if (parts < LOW_PARTS && ranges + 1 >= LOOKS_MIN * LOOK_EVERY_AT_FIRST)
    store_relaxed(&is_low, true);
}
