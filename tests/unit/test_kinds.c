/* src/heap/kinds: the kind of each block, and that only the magazines' own kind takes the fast path
 * of free. */
#include "heap/kinds.h"

#include "cache/divert.h"
#include "heaps.h"
#include "named/named_samples.h"

enum { SIZE = 100, CLASS_112 = 7, LARGE = 200 << 10, BIG = 3 << 20 };

static bool is_on_the_fast_path(const void *block) {
  return heap_place_of(heap_of_thread, owner_map_entry((uintptr_t)block)) < PLACES_END;
}

/* Also while the thread's frees are diverted: its tag then resembles no entry. */
static void require_kind(void *block, enum kind kind) {
  enum kind found = kind_of_entry(owner_map_entry((uintptr_t)block));
  REQUIRE((found == KIND_none ? kind_elsewhere((uintptr_t)block) : found) == kind);
  REQUIRE(is_on_the_fast_path(block) == (kind == KIND_slab));
  heap_divert(heap_of_thread, HEAP_POKE);
  REQUIRE(!is_on_the_fast_path(block) && heap_attention(heap_of_thread));
  heap_set_tag(heap_of_thread);
}

/* Its second free is reported. */
static void require_freed_once(void *block, enum kind kind, size_t least_bytes) {
  require_kind(block, kind);
  size_t usable_bytes = hak_malloc_usable_size(block);
  REQUIRE(kind_knows_request(kind) ? usable_bytes == least_bytes : usable_bytes >= least_bytes);
  os_fake_forget_written();
  hak_free(block);
  REQUIRE(!os_fake.written_bytes);
  hak_free(block);
  REQUIRE(strstr(os_fake.written, "free of 0x"));
}

CHILD_TEST(kinds_of_plain_mode) {
  start_library();
  misuse_action = MISUSE_WARN;
  hak_heap *heap = hak_heap_new("a heap");
  char *big = must_malloc(BIG);
  require_kind(big + GRANULE_BYTES, KIND_none);
  require_kind(&heap, KIND_foreign);
  require_freed_once(must_malloc(SIZE), KIND_slab, SIZE);
  require_freed_once(must_malloc(LARGE), KIND_large, LARGE);
  require_freed_once(big, KIND_big, BIG);
  require_freed_once(hak_heap_malloc(heap, SIZE), KIND_named_slab, SIZE);
  require_freed_once(hak_heap_malloc(heap, LARGE), KIND_named_range, LARGE);
  char *sample = named_samples_take(CLASS_112), *other = named_samples_take(CLASS_112);
  REQUIRE(!hak_heap_of(sample));
  require_freed_once(sample, KIND_named_slab, 112);
  hak_free(other);
}

/* A size that hak_calloc rounds up is the size that a sized free names. */
CHILD_TEST(kinds_of_hardened_mode) {
  start_hardened(1);
  misuse_action = MISUSE_WARN;
  hak_heap *heap = hak_heap_new("a heap");
  hak_free_sized(hak_rezalloc(hak_calloc(1, SIZE - 9), SIZE), SIZE);
  hak_free_sized(hak_calloc(1, SIZE - 9), SIZE - 9);
  REQUIRE(!os_fake.written_bytes);
  require_freed_once(must_malloc(SIZE), KIND_hardened_slab, SIZE);
  require_freed_once(must_malloc(LARGE), KIND_hardened_range, LARGE);
  require_freed_once(hak_heap_malloc(heap, SIZE), KIND_hardened_named_slab, SIZE);
  require_freed_once(hak_heap_malloc(heap, LARGE), KIND_hardened_named_range, LARGE);
  require_freed_once(hak_malloc(0), KIND_nothing, 0);
}
