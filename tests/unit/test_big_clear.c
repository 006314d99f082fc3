/* src/ranges/big: very large blocks are cleared by giving their pages back: nobody writes zeros to
 * what was never touched. */
#include "heaps.h"

#define MIB ((size_t)1 << 20)
static const size_t much = 300 * MIB;

static uint64_t purged_bytes(void) { return load_relaxed(&totals.purged_bytes); }

/* Every so often, and both ends. */
static void fill(unsigned char *block, size_t from, size_t bytes, unsigned char value) {
  for (size_t at = from; at < bytes; at += 64 * 1024 + 1) block[at] = value;
  block[bytes - 1] = value;
}

static void require_all(const unsigned char *block, size_t from, size_t bytes,
                        unsigned char value) {
  for (size_t at = from; at < bytes; at += 64 * 1024 + 1) REQUIRE(block[at] == value);
  REQUIRE(block[bytes - 1] == value);
}

/* Freed just now, while more lives on. */
static unsigned char *dirty_block(size_t bytes) {
  start_library();
  must_malloc(2 * bytes);
  unsigned char *block = must_malloc(bytes);
  fill(block, 0, bytes, 7);
  hak_free(block);
  return block;
}

CHILD_TEST(calloc_of_used_pages) {
  unsigned char *block = dirty_block(much);
  uint64_t before = purged_bytes();
  REQUIRE(hak_calloc(1, much) == block && purged_bytes() - before > much - 2 * MIB);
  require_all(block, 0, much, 0);
}

CHILD_TEST(where_the_system_refuses) {
  unsigned char *block = dirty_block(much);
  os_fake_fail(1u << OS_CALL_PURGE, 1, UINT64_MAX);
  REQUIRE(hak_calloc(1, much) == block && os_fake.refused[OS_CALL_PURGE]);
  require_all(block, 0, much, 0);
}

CHILD_TEST(less_is_written) {
  unsigned char *block = dirty_block(20 * MIB);
  uint64_t before = purged_bytes();
  REQUIRE(hak_calloc(1, 20 * MIB) == block && purged_bytes() == before);
  require_all(block, 0, 20 * MIB, 0);
}

/* What is kept ends in the middle of a page. */
CHILD_TESTS(rezalloc_keeps, enum os_huge_mode, mode, OS_HUGE_NEVER, OS_HUGE_ALWAYS) {
  os_fake.huge_mode = mode;
  start_library();
  size_t kept = 10 * MIB + 100;
  unsigned char *block = must_malloc(kept + 2 * much);
  fill(block, 0, kept + 2 * much, 7);
  fill(block, 0, kept, 7);
  REQUIRE(hak_realloc(block, kept) == block);
  size_t usable = hak_malloc_usable_size(block);
  uint64_t before = purged_bytes();
  block = hak_rezalloc(block, kept + much);
  REQUIRE(block && purged_bytes() - before > much - 5 * MIB);
  require_all(block, 0, kept, 7);
  require_all(block, usable, kept + much, 0);
  REQUIRE(load_relaxed(&os_fake.huge_page_leaks) == 0);
}
