/* src/profile: the table of live samples, and that of their sites. */
#include "map/metadata.h"
#include "profile/samples.h"
#include "profile/sites.h"
#include "slabs.h"

static struct profile_sample sample = {.block_bytes = 64, .period_bytes = 64};
static uint64_t random_state[MODEL_THREADS_MAX];

/* ---- the table of live samples --------------------------------------------------------------- */

/* Two addresses whose places are the same. */
static uintptr_t first_address, second_address;

static uint64_t bucket_of(uintptr_t address) { return mix_bits(address) >> 56; }

static unsigned removed[MODEL_THREADS_MAX];

static void set_up_sample(void) {
  set_up_pool();
  for (unsigned thread = 0; thread < MODEL_THREADS_MAX; thread++) {
    random_state[thread] = thread + 1;
    removed[thread] = 0;
  }
  first_address = second_address = 0x10000;
  do {
    second_address += 16;
  } while (bucket_of(second_address) != bucket_of(first_address));
  MODEL_REQUIRE(samples_add(first_address, &sample, 0, &random_state[0]));
}

static void add_second(void) {
  MODEL_REQUIRE(samples_add(second_address, &sample, 0, &random_state[model_self()]));
}

static bool remove_one(uintptr_t address) {
  struct profile_sample found;
  unsigned halvings;
  return samples_remove(address, &found, &halvings);
}

/* A block that is freed by two threads: one of them finds its sample. */
static void remove_first(void) { removed[model_self()] = remove_one(first_address); }

static void check_removed(void) {
  MODEL_REQUIRE(removed[0] + removed[1] == 1);
  MODEL_REQUIRE(load_relaxed(&profile_state.live_samples) == 0);
}

static const struct model_mutant remove_mutants[] = {
    {"removed in two steps", {{"samples_remove", "cas", "key", MODEL_SPLIT, 0}}}};

/* A freed block's place is another's at once, or its own again. */
static void remove_and_add(void) {
  MODEL_REQUIRE(remove_one(first_address));
  MODEL_REQUIRE(samples_add(first_address, &sample, 0, &random_state[model_self()]));
}

static void check_both(void) {
  MODEL_REQUIRE(load_relaxed(&profile_state.live_samples) == 2);
  MODEL_REQUIRE(remove_one(first_address) && remove_one(second_address));
  MODEL_REQUIRE(!remove_one(first_address) && !remove_one(second_address));
}

static const struct model_mutant add_mutants[] = {
    {"a place claimed in two steps", {{"claim", "cas", "keys", MODEL_SPLIT, 0}}}};

/* ---- the tables of stacks -------------------------------------------------------------------- */

static const uintptr_t stack[] = {0x1111, 0x2222, 0x3333}, other_stack[] = {0x1111, 0x4444};
static uint32_t found_site[MODEL_THREADS_MAX];

static void set_up_tables(void) {
  set_up_pool();
  MODEL_REQUIRE(sites_find(other_stack, 2, true) == SITE_LOST + 1);
}

/* Two pieces of the tables are made by the threads, in memory that is there. */
static void set_up_first(void) {
  set_up_pool();
  MODEL_REQUIRE(metadata_allocate(1));
}

static void note_at(const uintptr_t *frames, size_t frame_count) {
  uint32_t site = sites_find(frames, frame_count, true);
  struct profile_sample here = sample;
  if (model_self() >= 0) found_site[model_self()] = site;
  here.site = site;
  MODEL_REQUIRE(site != SITE_LOST);
  const struct profile_site *record = sites_record(site);
  MODEL_REQUIRE(load_relaxed(&record->frame_count) == frame_count && record->is_complete);
  for (size_t frame = 0; frame < frame_count; frame++)
    MODEL_REQUIRE(record->frames[frame] == frames[frame]);
  sites_note_allocated(&here);
}

static void note_stack(void) { note_at(stack, 3); }
static void note_other(void) { note_at(other_stack, 2); }

static double blocks_at(uint32_t site) {
  return real_of_bits(load_relaxed(&sites_record(site)->allocated.blocks));
}

/* Two threads that come with one stack have one site, and nothing of what they add is lost. */
static void check_site(void) {
  MODEL_REQUIRE(found_site[0] == found_site[1]);
  double both = blocks_at(found_site[0]);
  note_stack();
  MODEL_REQUIRE(both > 0 && blocks_at(found_site[0]) > 1.4 * both);
  MODEL_REQUIRE(blocks_at(found_site[0]) < 1.6 * both);
}

static void check_two_sites(void) { MODEL_REQUIRE(found_site[0] != found_site[1]); }

static const struct model_mutant site_mutants[] = {
    {"put in its row in two steps", {{"sites_find", "cas", "row", MODEL_SPLIT, 0}}},
    {"in its row before it is written", {{"sites_find", "cas", "row", MODEL_WEAKEN, 0}}},
    {"added in two steps", {{"add_real", "cas", "sum", MODEL_SPLIT, 0}}}};

static const struct model_mutant first_site_mutants[] = {
    {"numbered in two steps", {{"take_number", "cas", "site_count", MODEL_SPLIT, 0}}}};

SCENARIO("profile-remove", .set_up = set_up_sample, .threads = {remove_first, remove_first},
         .check = check_removed, MUTANTS(remove_mutants));
SCENARIO("profile-add", .set_up = set_up_sample, .threads = {remove_and_add, add_second},
         .check = check_both, MUTANTS(add_mutants));
SCENARIO("profile-site", .set_up = set_up_tables, .threads = {note_stack, note_stack},
         .check = check_site, MUTANTS(site_mutants));
SCENARIO("profile-first-site", .set_up = set_up_first, .threads = {note_stack, note_other},
         .check = check_two_sites, .in_order = true, MUTANTS(first_site_mutants));
