/* src/heap/object: which block an address lies in. */
#include "heap/object.h"

#include "heaps.h"

BEFORE(child) { start_library(); }
static const size_t sizes[] = {1, 100, 1000, 5000, 30000, 100000, 3 << 20};

CHILD_TEST(every_byte_of_a_live_block) {
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
}

BARE_TEST(what_is_not_ours_is_unknown) {
  static char global;
  struct object object;
  REQUIRE(object_find((uintptr_t)&global, false, &object) ==
          OBJECT_UNKNOWN); /* before all blocks */
  start_library();
  REQUIRE(object_find((uintptr_t)&global, false, &object) == OBJECT_UNKNOWN);
  REQUIRE(object_find((uintptr_t)&object, true, &object) == OBJECT_UNKNOWN);
  REQUIRE(object_find(0, false, &object) == OBJECT_UNKNOWN);
}

CHILD_TEST(a_freed_big_block_is_none) {
  struct object object;
  void *block = must_malloc(3 << 20);
  hak_free(block);
  REQUIRE(object_find((uintptr_t)block, false, &object) == OBJECT_NONE);
}

CHILD_TEST(a_description_has_the_class) {
  struct object object;
  uintptr_t block = (uintptr_t)must_malloc(100);
  REQUIRE(object_find(block + 5, false, &object) == OBJECT_LIVE);
  struct block_description said = object_describe(&object);
  REQUIRE(said.base == block && said.block_bytes == 112 && said.class_number == 7);
  REQUIRE(strcmp(said.tier, "tiny") == 0 && said.thread_id != 0);
}
