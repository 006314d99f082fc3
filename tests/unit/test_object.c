/* src/heap/object: which block an address lies in. */
#include "heap/object.h"

#include "heap/free.h"
#include "heaps.h"

static const size_t sizes[] = {1, 100, 1000, 5000, 30000, 100000, 3 << 20};

static int every_byte_of_a_live_block(const void *unused) {
  (void)unused;
  start_library();
  for (unsigned each = 0; each < sizeof sizes / sizeof sizes[0]; each++) {
    uintptr_t block = (uintptr_t)must_malloc(sizes[each]);
    size_t bytes = hak_malloc_usable_size((void *)block);
    const size_t offsets[] = {0, bytes / 2, bytes - 1};
    for (unsigned which = 0; which < 3; which++)
      for (unsigned hurried = 0; hurried < 2; hurried++) {
        struct object object;
        REQUIRE(object_find(block + offsets[which], hurried, &object) == OBJECT_LIVE);
        REQUIRE(object.base == block && object.bytes == bytes);
      }
  }
  return 0;
}
CHILD_TEST(every_byte_of_a_live_block)

static int what_is_not_ours_is_unknown(const void *unused) {
  (void)unused;
  static char global;
  struct object object;
  REQUIRE(object_find((uintptr_t)&global, false, &object) ==
          OBJECT_UNKNOWN); /* before all blocks */
  start_library();
  REQUIRE(object_find((uintptr_t)&global, false, &object) == OBJECT_UNKNOWN);
  REQUIRE(object_find((uintptr_t)&object, true, &object) == OBJECT_UNKNOWN);
  REQUIRE(object_find(0, false, &object) == OBJECT_UNKNOWN);
  return 0;
}
CHILD_TEST(what_is_not_ours_is_unknown)

static int a_freed_big_block_is_none(const void *unused) {
  (void)unused;
  struct object object;
  start_library();
  void *block = must_malloc(3 << 20);
  hak_free(block);
  REQUIRE(object_find((uintptr_t)block, false, &object) == OBJECT_NONE);
  return 0;
}
CHILD_TEST(a_freed_big_block_is_none)

static int a_description_has_the_class(const void *unused) {
  (void)unused;
  struct object object;
  start_library();
  uintptr_t block = (uintptr_t)must_malloc(100);
  REQUIRE(object_find(block + 5, false, &object) == OBJECT_LIVE);
  struct block_description said = object_describe(&object);
  REQUIRE(said.base == block && said.block_bytes == 112 && said.class_number == 7);
  REQUIRE(strcmp(said.tier, "tiny") == 0 && said.thread_id != 0);
  return 0;
}
CHILD_TEST(a_description_has_the_class)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_byte_of_a_live_block),
      cmocka_unit_test(test_what_is_not_ours_is_unknown),
      cmocka_unit_test(test_a_freed_big_block_is_none),
      cmocka_unit_test(test_a_description_has_the_class),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
