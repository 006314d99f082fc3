#include "ranges/density.h"

#include "os/os.h"

/* A look is a system call: frequent at first, since merged ranges stay touched, then rare. The
 * average of earlier looks has seven times the weight of a new one. */
enum { LOOK_EVERY_AT_FIRST = 4, LOOK_EVERY = 64, LOOK_AT_END_EVERY = 256, WEIGHT_DIVISOR = 8 };
/* Low once LOOKS_MIN looks were taken and their average is below an eighth, until it reaches half:
 * ranges that stay whole fill up slowly, as blocks of a class differ in size. */
enum { DENSITY_PARTS = 256 };
enum { LOOKS_MIN = 8, LOW_PARTS = DENSITY_PARTS / 8, HIGH_PARTS = DENSITY_PARTS / 2 };
enum { FIRST_RANGES = LOOKS_MIN * LOOK_EVERY_AT_FIRST };

static ATOMIC(uint32_t) parts_resident; /* 0: none seen yet */
static ATOMIC(uint32_t) ranges_seen;
static ATOMIC(uint32_t) ends_resident; /* in DENSITY_PARTS */
static ATOMIC(bool) is_low;
ATOMIC(uint32_t) density_end_mask;

RESIDENT bool density_is_low(void) { return load_relaxed(&is_low); }

static uint32_t parts_of(size_t granule, size_t granules) {
  size_t bytes = granules << GRANULE_SHIFT;
  return (uint32_t)(os_resident_bytes((void *)granule_address(granule), bytes) * DENSITY_PARTS /
                    bytes);
}

static uint32_t mean_with(uint32_t before, uint32_t parts) {
  return before ? (before * (WEIGHT_DIVISOR - 1) + parts) / WEIGHT_DIVISOR : parts;
}

/* A program that touches only the beginning of its blocks touches the same pages wherever they
 * end. */
static void note_end(size_t granule) {
  size_t granules = range_info(granule)->granules;
  bool is_touched = parts_of(granule + granules - 1, 1) != 0;
  uint32_t ends = mean_with(load_relaxed(&ends_resident), is_touched ? DENSITY_PARTS : 1);
  store_relaxed(&ends_resident, ends);
}

RESIDENT void density_note(size_t granule) {
  uint32_t ranges = fetch_add_relaxed(&ranges_seen, 1);
  uint32_t every = ranges < FIRST_RANGES ? LOOK_EVERY_AT_FIRST : LOOK_EVERY;
  if ((ranges + 1) % every) return; /* not at the first: a look costs a short process too much */
  uint32_t parts =
      mean_with(load_relaxed(&parts_resident), parts_of(granule, range_info(granule)->granules));
  store_relaxed(&parts_resident, parts ? parts : 1);
  if (parts >= HIGH_PARTS)
    store_relaxed(&is_low, false);
  else if (parts < LOW_PARTS && ranges + 1 >= FIRST_RANGES)
    store_relaxed(&is_low, true);
  if (ranges < FIRST_RANGES || (density_is_low() && (ranges + 1) % LOOK_AT_END_EVERY == 0))
    note_end(granule);
  bool do_ends_count = density_is_low() && load_relaxed(&ends_resident) >= DENSITY_PARTS / 2;
  uint32_t in_one_page = (uint32_t)(os_page_bytes() - 1) / END_STEP_BYTES; /* count as one end */
  store_relaxed(&density_end_mask, do_ends_count ? (RANGE_ENDS - 1u) & ~in_one_page : 0);
}
