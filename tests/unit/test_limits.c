/* Memory that ends: a limit of the address space (RLIMIT_AS), and a system that refuses to
 * overcommit (vm.overcommit_memory=2). */
#include "fill.h"
#include "workload.h"

#define MIB ((size_t)1 << 20)

/* Fills the whole room with one size after the other: what one leaves the next can use. */
static void require_every_size_fills(size_t least_bytes) {
  for (unsigned index = 0; index < 2 * SIZE_COUNT; index++) {
    struct link *chain = NULL;
    size_t size = fill_sizes[index % SIZE_COUNT], bytes = fill(&chain, size);
    if (bytes < least_bytes) fprintf(stderr, "blocks of %zu: %zu bytes\n", size, bytes);
    REQUIRE(bytes >= least_bytes);
    empty(&chain);
  }
}

/* ---- the address space ----------------------------------------------------------------------- */

CHILD_TESTS(address_space_limit, size_t, limit, 64 * MIB, 256 * MIB) {
  os_fake.address_space_limit_bytes = limit;
  require_every_size_fills(limit / 2);
  REQUIRE(load_relaxed(&os_fake.address_bytes) <= limit);
}

/* ---- strict overcommit ----------------------------------------------------------------------- */

CHILD_TEST(strict_overcommit) {
  const size_t limit = 64 * MIB;
  os_fake.is_overcommit_strict = true;
  os_fake.commit_limit_bytes = limit;
  require_every_size_fills(limit / 2);
  hak_purge(true);
  /* Mappings that nobody uses are charged there: they must not be kept. */
  REQUIRE(load_relaxed(&os_fake.charged_bytes) <= limit / 4);
  struct workload load = {.must_succeed = true};
  os_fake.commit_limit_bytes = UINT64_MAX;
  workload_run(&load);
}

/* ---- asking in vain -------------------------------------------------------------------------- */

/* A program that goes on asking must not eat up hakmem's own memory by that. */
CHILD_TEST(asking_in_vain_costs_nothing) {
  struct link *chain = NULL;
  os_fake.address_space_limit_bytes = 64 * MIB;
  for (unsigned index = 0; index < SIZE_COUNT; index++)
    fill(&chain, fill_sizes[SIZE_COUNT - 1 - index]);
  uint64_t before = load_relaxed(&totals.metadata_bytes);
  for (unsigned attempt = 0; attempt < 200; attempt++)
    for (unsigned index = 0; index < SIZE_COUNT; index++)
      REQUIRE(!push_block(chain, fill_sizes[index]));
  REQUIRE(load_relaxed(&totals.metadata_bytes) - before < 256 << 10);
  empty(&chain);
}

/* ---- places that are taken ------------------------------------------------------------------- */

CHILD_TEST(somebody_else_in_the_window) {
  struct workload load = {.must_succeed = true};
  os_fake.occupied_places = 3;
  workload_run(&load);
  os_fake.occupied_places = 100;
  workload_run(&load);
}
