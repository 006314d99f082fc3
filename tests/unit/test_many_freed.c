/* src/profile/sites: counts of 32 bits do not begin anew. */
#include "profile/sites.h"

#include "profiles.h"

enum { MORE = 1 << 17 };

CHILD_TEST(free_very_many) {
  const uintptr_t frames[] = {0x400000, 0x400010};
  const uint32_t many = UINT32_MAX - MORE / 2;
  struct profile_sample sample = {.block_bytes = 64, .period_bytes = 64};
  start_library();
  sample.site = sites_find(frames, 2, true);
  struct profile_site *site = sites_record(sample.site);
  store_relaxed(&site->freed_samples, many);
  store_relaxed(&site->lifetimes[0], many);
  for (unsigned count = 0; count < MORE; count++) sites_note_freed(&sample, 0, 0);
  REQUIRE(load_relaxed(&site->freed_samples) >= many);
  REQUIRE(load_relaxed(&site->lifetimes[0]) >= many);
}
