/* Heaps that the program makes: their blocks are theirs in every tier, wherever they are resized or
 * freed, and go all at once; limits, figures, names; what is refused. */
#include "api/check.h"
#include "api/figures.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"

static void check_empty(hak_heap *heap) {
  struct hak_figures figures = figures_of(heap);
  CHECK_MSG(figures.live_bytes == 0 && figures.live_blocks == 0, "%lu bytes in %lu blocks",
            (unsigned long)figures.live_bytes, (unsigned long)figures.live_blocks);
}

/* ---- blocks of each tier --------------------------------------------------------------------- */

static void check_block(hak_heap *heap, char *block, size_t size) {
  CHECK_MSG(block != NULL, "%zu", size);
  CHECK_MSG(hak_heap_of(block) == heap, "%zu", size);
  CHECK_MSG(malloc_usable_size(block) >= size && hak_owns(block), "%zu", size);
  CHECK_MSG(malloc_object_size(block) >= size && malloc_object_size(block + size / 2) >= size / 2,
            "%zu", size);
}

static void take_and_free(hak_heap *heap, size_t size) {
  char *block = hak_heap_malloc(heap, size);
  check_block(heap, block, size);
  CHECK(size < 16 || (uintptr_t)block % 16 == 0);
  stamp_write(block, size, size);
  CHECK(figures_of(heap).live_blocks == 1 && figures_of(heap).live_bytes >= size);
  for (size_t other = 0; other < TIER_SIZES; other++) {
    size_t kept = size < tier_sizes[other] ? size : tier_sizes[other];
    block = realloc(block, tier_sizes[other]);
    check_block(heap, block, tier_sizes[other]);
    CHECK_MSG(stamp_holds(block, kept, size), "%zu to %zu", size, tier_sizes[other]);
    size = tier_sizes[other];
    stamp_write(block, size, size);
  }
  if (size % 2)
    free(block);
  else
    hak_free_sized(block, size);
  check_empty(heap);
}

static void zeroed_and_aligned(hak_heap *heap, size_t size) {
  for (int round = 0; round < 2; round++) { /* the second is the first one's memory */
    char *block = hak_heap_calloc(heap, 1, size);
    check_block(heap, block, size);
    CHECK_MSG(all_bytes_are(block, size, 0), "%zu", size);
    for (size_t byte = 0; byte < size; byte++) block[byte] = 1;
    free(block);
  }
  for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 8) {
    char *block = hak_heap_aligned_alloc(heap, alignment, size);
    check_block(heap, block, size);
    CHECK_MSG((uintptr_t)block % alignment == 0, "%zu, %zu", alignment, size);
    hak_free_aligned_sized(block, alignment, size);
  }
  check_empty(heap);
}

/* ---- from heap to heap ----------------------------------------------------------------------- */

static void move_between(hak_heap *heap, hak_heap *other, size_t size) {
  char *block = malloc(size);
  CHECK(block != NULL && hak_heap_of(block) == NULL);
  stamp_write(block, size, 7);
  hak_heap *const ways[] = {heap, other, hak_heap_of_thread(), heap};
  for (size_t way = 0; way < COUNT_OF(ways); way++) {
    block = hak_heap_realloc(ways[way], block, size);
    CHECK_MSG(block != NULL && stamp_holds(block, size, 7), "%zu, way %zu", size, way);
    CHECK(hak_heap_of(block) == (way == 2 ? NULL : ways[way]));
  }
  CHECK(hak_heap_realloc(heap, block, 0) == NULL);
  check_empty(heap);
  check_empty(other);
}

/* ---- all at once ----------------------------------------------------------------------------- */

enum { MANY = 3000 };

static void free_all(hak_heap *heap, hak_heap *other) {
  char *kept[MANY], *others[MANY];
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < MANY; i++) {
      size_t size = tier_sizes[i % (TIER_SIZES - 6)];
      char *block = hak_heap_malloc(heap, size);
      check_block(heap, block, size);
      stamp_write(block, size, i);
      others[i] = hak_heap_malloc(other, 40);
      kept[i] = malloc(40);
      CHECK(others[i] != NULL && kept[i] != NULL);
      stamp_write(others[i], 40, i);
      stamp_write(kept[i], 40, i + MANY);
      if (i % 3 == 0) free(block);
    }
    CHECK(figures_of(heap).live_blocks == MANY - MANY / 3);
    CHECK(hak_heap_free_all(heap));
    check_empty(heap);
    for (size_t i = 0; i < MANY; i++) {
      CHECK(stamp_holds(others[i], 40, i) && stamp_holds(kept[i], 40, i + MANY));
      free(others[i]);
      free(kept[i]);
    }
    check_empty(other);
  }
  CHECK(figures_of(heap).allocations >= 3 * MANY);
}

/* A heap for each request, as servers have them. */
static void many_heaps(void) {
  hak_heap *last = NULL;
  for (int request = 0; request < 2000; request++) {
    hak_heap *heap = MUST(hak_heap_new("request"));
    check_empty(heap);
    CHECK(figures_of(heap).peak_bytes == 0 && figures_of(heap).limit_bytes == 0);
    for (size_t i = 0; i < 20; i++) stamp_write(hak_heap_malloc(heap, i * 100), i * 100, i);
    if (last) CHECK(hak_heap_destroy(last));
    last = heap;
  }
  CHECK(hak_heap_destroy(last));
  hak_heap *held[200];
  for (size_t i = 0; i < COUNT_OF(held); i++) {
    held[i] = hak_heap_new(NULL);
    CHECK(held[i] != NULL && hak_heap_of(hak_heap_malloc(held[i], 100)) == held[i]);
  }
  for (size_t i = 0; i < COUNT_OF(held); i++) CHECK(hak_heap_destroy(held[i]));
}

/* ---- limits, names --------------------------------------------------------------------------- */

enum { LIMITED = KIB - 8 }; /* a block of 1 KiB, with the trailer of hardened mode, too */

static void limits(void) {
  hak_heap *heap = hak_heap_new("limited");
  CHECK(hak_set_limit(heap, MIB) && figures_of(heap).limit_bytes == MIB);
  void *blocks[2 * KIB];
  size_t count = 0;
  errno = 0;
  while (count < COUNT_OF(blocks) && (blocks[count] = hak_heap_malloc(heap, LIMITED))) count++;
  CHECK(count == KIB && errno == ENOMEM && figures_of(heap).refusals == 1);
  CHECK(hak_heap_malloc(heap, 4 * MIB) == NULL && hak_heap_calloc(heap, SIZE_MAX, 2) == NULL);
  CHECK_FAILS(realloc(blocks[0], 100000), ENOMEM);
  free(blocks[0]);
  CHECK((blocks[0] = hak_heap_malloc(heap, LIMITED)) != NULL);
  CHECK(malloc_usable_size(blocks[0]) >= LIMITED && figures_of(heap).peak_bytes == MIB);
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  char *large = hak_heap_malloc(heap, 300000);
  CHECK(large != NULL && realloc(large, 5 * MIB) == NULL);
  free(large);
  CHECK(hak_set_limit(heap, 0));
  CHECK((large = hak_heap_malloc(heap, 8 * MIB)) != NULL);
  free(large);
  CHECK(hak_heap_destroy(heap));
}

static void *of_another_thread(void *theirs) {
  hak_heap *own = hak_heap_of_thread();
  CHECK(own != NULL && own != theirs && own == hak_heap_of_thread());
  hak_heap_set_name(own, "worker");
  CHECK_FAILS(hak_heap_malloc(theirs, 10), EPERM);
  return hak_heap_malloc(own, 100);
}

static void names(hak_heap *heap) {
  hak_heap_set_name(heap, "a name of more than thirty-one bytes");
  hak_heap_set_tag(heap, 42);
  CHECK(strcmp(figures_of(heap).name, "a name of more than thirty-one ") == 0);
  CHECK(figures_of(heap).tag == 42);
  uint64_t first = 0;
  hak_heap_figures(heap, (struct hak_figures *)(void *)&first, sizeof first);

  hak_heap *own = hak_heap_of_thread();
  CHECK(own != NULL && own == hak_heap_of_thread() && own != heap);
  hak_heap_set_name(own, "main");
  CHECK(strcmp(figures_of(own).name, "main") == 0);
  void *block = hak_heap_malloc(own, 1000);
  CHECK(block != NULL && hak_heap_of(block) == NULL && figures_of(own).live_bytes >= 1000);
  free(block);
  CHECK_FAILS(hak_heap_free_all(own), EINVAL);
  CHECK_FAILS(hak_heap_destroy(own), EINVAL);
  CHECK_FAILS(hak_set_limit(own, 1), EINVAL);
  for (int thread = 0; thread < 3; thread++) {
    void *result;
    CHECK(pthread_join(thread_start(of_another_thread, own), &result) == 0);
    CHECK(result != NULL);
    free(result);
  }
}

static void refusals(hak_heap *heap) {
  CHECK_FAILS(hak_heap_malloc(heap, SIZE_MAX), ENOMEM);
  CHECK_FAILS(hak_heap_calloc(heap, SIZE_MAX / 2, 3), ENOMEM);
  CHECK_FAILS(hak_heap_aligned_alloc(heap, 48, 100), EINVAL);
  CHECK_FAILS(hak_heap_malloc(heap, (size_t)1 << 46), ENOMEM);
  CHECK(hak_heap_of(NULL) == NULL && hak_heap_of(&errno) == NULL && hak_heap_destroy(NULL));
  check_empty(heap);
}

int main(void) {
  hak_heap *heap = hak_heap_new("first"), *other = hak_heap_new(NULL);
  CHECK(heap != NULL && other != NULL && heap != other);
  CHECK(strcmp(figures_of(heap).name, "first") == 0);
  CHECK(strncmp(figures_of(other).name, "heap ", 5) == 0);
  for (size_t i = 0; i < TIER_SIZES; i++) {
    take_and_free(heap, tier_sizes[i]);
    zeroed_and_aligned(heap, tier_sizes[i]);
    move_between(heap, other, tier_sizes[i]);
  }
  limits();
  free_all(heap, other);
  names(heap);
  refusals(heap);
  many_heaps();
  CHECK(hak_heap_destroy(heap) && hak_heap_destroy(other));
  return 0;
}
