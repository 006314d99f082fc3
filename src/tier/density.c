#include "tier/density.h"

#include "os/os.h"

/* A look is a call of the system; what was seen before counts seven times as much. */
enum { LOOK_EVERY = 16, WEIGHT_DIVISOR = 8 };

static ATOMIC(uint32_t) parts_resident; /* 0: none seen yet */
static ATOMIC(uint32_t) ranges_seen;

unsigned density_parts(void) {
  uint32_t parts = load_relaxed(&parts_resident);
  return parts ? parts : DENSITY_PARTS;
}

static uint32_t parts_of(size_t granule) {
  size_t bytes = (size_t)range_info(granule)->granules << GRANULE_SHIFT;
  return (uint32_t)(os_resident_bytes((void *)granule_address(granule), bytes) * DENSITY_PARTS /
                    bytes);
}

void density_note(size_t granule) {
  if (fetch_add_relaxed(&ranges_seen, 1) % LOOK_EVERY) return;
  uint32_t before = load_relaxed(&parts_resident), parts = parts_of(granule);
  if (before) parts = (before * (WEIGHT_DIVISOR - 1) + parts) / WEIGHT_DIVISOR;
  store_relaxed(&parts_resident, parts ? parts : 1);
}
