/* src/foreign/pointer: what is said, or done, about pointers that are no live blocks of ours. */
#include "foreign/pointer.h"

#include "cache/heap.h"
#include "heap/thread.h"
#include "heaps.h"
#include "map/window.h"

BEFORE(child) { start_library(); }

#define MIB ((size_t)1 << 20)

#define FOREIGN "hakmem: foreign ", " of 0x", ": neither hakmem's nor libc's (class none)"
#define INVALID "hakmem: invalid ", " of 0x", ": no block lives there (class none)"

/* ---- by tier --------------------------------------------------------------------------------- */

struct pointer_misuse {
  size_t size;
  size_t offset; /* where free is called, from the block's begin */
  unsigned frees;
};

static void free_badly(const void *argument) {
  const struct pointer_misuse *misuse = argument;
  char *block;
  start_library();
  block = must_malloc(misuse->size);
  for (unsigned time = 0; time < misuse->frees; time++) hak_free(block + misuse->offset);
  hak_purge(true); /* whatever still sleeps in a magazine meets its slab */
}

static void assert_says(struct pointer_misuse misuse, const char *begin, const char *middle,
                        const char *end) {
  const char *const parts[] = {begin, middle, end, NULL};
  assert_child_reports(free_badly, &misuse, parts);
}

TEST(misaligned) {
  static const char begin[] = "hakmem: misaligned free of 0x";
  assert_says((struct pointer_misuse){100, 8, 1}, begin, ": inside the block of 112 bytes at 0x",
              "(tiny class 7, of thread ");
  assert_says((struct pointer_misuse){5000, 16, 1}, begin, ": inside the block of 5120 bytes at 0x",
              "(mid class 29, of thread ");
  assert_says((struct pointer_misuse){100000, 16, 1}, begin,
              ": inside the block of 126976 bytes at 0x", "(large class 49, of thread ");
  assert_says((struct pointer_misuse){3 * MIB, 16, 1}, begin,
              ": inside the block of 3207168 bytes at 0x", "(big class 0)");
  assert_says((struct pointer_misuse){3 * MIB, MIB, 1}, begin,
              ": inside the block of 3207168 bytes at 0x", "(big class 0)");
}

TEST(double) {
  static const char begin[] = "hakmem: double free of 0x";
  assert_says((struct pointer_misuse){100, 0, 2}, begin, ": the block of 112 bytes is free already",
              "(tiny class 7, of thread ");
  assert_says((struct pointer_misuse){5000, 0, 2}, begin,
              ": the block of 5120 bytes is free already", "(mid class 29, of thread ");
  assert_says((struct pointer_misuse){100000, 0, 2}, begin,
              ": the block of 126976 bytes is free already", "(large class 49)");
  assert_says((struct pointer_misuse){3 * MIB, 0, 2}, begin,
              ": the block of 3207168 bytes is free already", "(big class 0)");
}

static void *require_own(void *unused) {
  REQUIRE(heap_of_this_thread());
  uintptr_t block = (uintptr_t)must_malloc(64);
  REQUIRE(pointer_describe(block, owner_map_entry(block), 64).thread_id ==
          owner_thread_id(&heap_of_thread->owner));
  return unused;
}

/* The map entries of all threads' slabs are alike. */
CHILD_TEST(name_the_thread) {
  require_own(NULL);
  on_a_thread(require_own, NULL);
}

/* ---- no block at all ------------------------------------------------------------------------- */

REPORT_TEST(free_the_stack, FOREIGN) {
  int here = 0;
  hak_free(&here);
}

REPORT_TEST(free_a_small_number, FOREIGN) { hak_free((void *)16); }

REPORT_TEST(ask_the_size_of_the_stack, FOREIGN) {
  int here = 0;
  hak_malloc_usable_size(&here);
}

REPORT_TEST(free_beyond_the_frontier, INVALID) {
  hak_free((void *)chunk_address(window.chunk_limit - 1));
}

REPORT_TEST(free_unused_memory, INVALID) {
  size_t chunk = granule_of((uintptr_t)must_malloc(64)) / GRANULES_PER_CHUNK;
  hak_free((void *)(chunk_address(chunk) + 20 * GRANULE_BYTES));
}

REPORT_TEST(free_own_records, INVALID) {
  hak_free((void *)chunk_address(0)); /* the first chunk holds metadata */
}

/* ---- the C library's blocks ------------------------------------------------------------------ */

/* What glibc keeps around a block: the size before, the own size with its flags, and after the
 * block the next chunk's header. */
struct libc_chunk {
  _Alignas(16) uint64_t before;
  uint64_t size_and_flags;
  unsigned char block[48];
  uint64_t unused, next_size_and_flags;
};
enum { IN_USE = 1, IN_OTHER_ARENA = 4 };

static void *freed;

static void note_free(void *block) { freed = block; }

CHILD_TEST(forward) {
  static struct libc_chunk chunk = {.size_and_flags = 64 | IN_OTHER_ARENA | IN_USE,
                                    .next_size_and_flags = 32 | IN_USE};
  os_fake.libc_malloc.free = note_free;
  REQUIRE(pointer_is_libc_block((uintptr_t)chunk.block));
  hak_free(chunk.block);
  REQUIRE(freed == chunk.block && counted(COUNT_foreign_frees) == 1);
  chunk.next_size_and_flags = 32; /* free already, by its own heap's records */
  REQUIRE(!pointer_is_libc_block((uintptr_t)chunk.block));
  chunk.next_size_and_flags = 32 | IN_USE;
  chunk.size_and_flags = 64 | IN_USE; /* of the main arena, which lies in the break */
  REQUIRE(!pointer_is_libc_block((uintptr_t)chunk.block));
  os_fake.break_begin = (uintptr_t)&chunk;
  os_fake.break_end = (uintptr_t)(&chunk + 1);
  REQUIRE(pointer_is_libc_block((uintptr_t)chunk.block));
  REQUIRE(!pointer_is_libc_block((uintptr_t)chunk.block + 8));
  chunk.size_and_flags = 24 | IN_USE;
  REQUIRE(!pointer_is_libc_block((uintptr_t)chunk.block));
  REQUIRE(!pointer_is_libc_block(4096) && !pointer_is_libc_block(0));
}

REPORT_TEST(go_without_another_malloc, FOREIGN) {
  static struct libc_chunk chunk = {.size_and_flags = 64 | IN_OTHER_ARENA | IN_USE,
                                    .next_size_and_flags = 32 | IN_USE};
  os_fake.libc_malloc.free = NULL;
  hak_free(chunk.block);
}

/* ---- hak_owns -------------------------------------------------------------------------------- */

CHILD_TEST(tell_what_is_ours) {
  static const size_t sizes[] = {1, 100, 5000, 100000, 3 * MIB};
  int here = 0;
  REQUIRE(!hak_owns(&here) && !hak_owns(NULL));
  REQUIRE(!hak_owns((void *)chunk_address(window.chunk_limit - 1)));
  for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    char *block = must_malloc(sizes[index]);
    size_t chunk = granule_of((uintptr_t)block) / GRANULES_PER_CHUNK;
    hak_owns((void *)(chunk_address(chunk) + 20 * GRANULE_BYTES)); /* never used: must not crash */
    REQUIRE(hak_owns(block) && hak_owns(block + sizes[index] - 1));
    hak_free(block);
    REQUIRE(hak_owns(block));
  }
}
