/* A correct program with heaps of its own, in hardened mode: each block ends where it was asked to,
 * and nothing is said. */
#include "api/check.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"
#include "misuse/hide.h"

static const size_t sizes[] = {0,   1,   7,    8,    9,    24,   40,    56,    100,   120,
                               128, 200, 1016, 1017, 4088, 5000, 20000, 32760, 32761, 100000};

static void check_size(hak_heap *heap, char *block, size_t size) {
  CHECK_MSG(block != NULL && hak_heap_of(block) == heap, "%zu", size);
  CHECK_MSG(malloc_usable_size(block) == size, "%zu, not %zu", malloc_usable_size(block), size);
  CHECK_MSG(malloc_object_size(block) == size, "%zu, not %zu", malloc_object_size(block), size);
  CHECK(!size || malloc_object_size_fast(block + size - 1) == 1);
  CHECK(malloc_object_size_fast(block + size) == 0);
}

static void all_ways(hak_heap *heap, size_t size) {
  char *block = hak_heap_malloc(heap, size);
  check_size(heap, block, size);
  stamp_write(block, size, size);
  for (size_t at = 0; at < COUNT_OF(sizes); at++) { /* in place and moved */
    if (!sizes[at]) continue;
    block = at % 2 ? realloc(block, sizes[at]) : hak_heap_realloc(heap, block, sizes[at]);
    check_size(heap, block, sizes[at]);
    CHECK(stamp_holds(block, size < sizes[at] ? size : sizes[at], size));
    size = sizes[at];
    stamp_write(block, size, size);
  }
  CHECK(hak_expand(block, size - 1) == block);
  hak_free_sized(block, size);
  block = hak_heap_calloc(heap, 1, size);
  check_size(heap, block, size);
  CHECK(all_bytes_are(block, size, 0));
  free(block);
}

static void aligned(hak_heap *heap, size_t size) {
  for (size_t alignment = 1; alignment <= 8192; alignment *= 4) {
    char *block = hak_heap_aligned_alloc(heap, alignment, size);
    CHECK((uintptr_t)block % alignment == 0);
    check_size(heap, block, size);
    stamp_write(block, size, size);
    hak_free_aligned_sized(block, alignment, size);
  }
}

static void *free_half(void *blocks) {
  for (size_t at = 0; at < COUNT_OF(sizes); at += 2) free(((char **)blocks)[at]);
  return NULL;
}

static void all_at_once(hak_heap *heap) {
  char *blocks[COUNT_OF(sizes)];
  for (int round = 0; round < 30; round++) {
    for (size_t at = 0; at < COUNT_OF(sizes); at++) {
      blocks[at] = hak_heap_malloc(heap, sizes[at]);
      check_size(heap, blocks[at], sizes[at]);
      stamp_write(blocks[at], sizes[at], at);
    }
    if (round % 4 == 0) thread_run(free_half, blocks);
    CHECK(hak_heap_free_all(heap));
  }
  CHECK(malloc_object_size_fast(hide(blocks[5])) != sizes[5]);
}

/* What the heap has left is as all free memory: threads' heaps find it untouched. */
static void others(void) {
  for (size_t at = 0; at < COUNT_OF(sizes); at++)
    for (int block = 0; block < 200; block++) free(hide(calloc(1, sizes[at])));
}

int main(void) {
  for (int is_profiled = 0; is_profiled < 2; is_profiled++) {
    hak_heap *heap = hak_heap_new("sound");
    for (size_t at = 0; at < COUNT_OF(sizes); at++) {
      all_ways(heap, sizes[at]);
      aligned(heap, sizes[at]);
    }
    all_at_once(heap);
    CHECK(hak_heap_destroy(heap));
    others();
    CHECK(hak_profile_start(64));
  }
  char *block = hak_heap_malloc(hak_heap_of_thread(), 100);
  CHECK(malloc_usable_size(block) == 100);
  free(block);
  return 0;
}
