/* Destructors of pthread keys made before and after everything else free and allocate in all four
 * rounds that glibc grants, so before and after the thread's heap was released. */
#include <limits.h>

#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "memory/rss.h"

enum { KEYS = 12, EARLY_KEYS = 4, THREADS = 4000, WARM_UP = 400 };

typedef struct {
  size_t key, round, size_index;
  void *block;
} baggage;

static pthread_key_t keys[KEYS];

static void pack(baggage *mine, size_t size_index) {
  mine->size_index = size_index % (TIER_SIZES - 5); /* up to 1 MiB */
  mine->block = MUST(malloc(tier_sizes[mine->size_index]));
  size_t bytes = tier_sizes[mine->size_index];
  stamp_write(mine->block, bytes < 4096 ? bytes : 4096, mine->key);
}

static void unpack(baggage *mine) {
  size_t bytes = tier_sizes[mine->size_index];
  CHECK(stamp_holds(mine->block, bytes < 4096 ? bytes : 4096, mine->key));
  free(mine->block);
}

/* Sets its key again until the last round, with a new block each time. */
static void destroy(void *value) {
  baggage *mine = value;
  unpack(mine);
  if (++mine->round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pack(mine, mine->size_index + 7);
    CHECK(pthread_setspecific(keys[mine->key], mine) == 0);
  } else {
    free(calloc(1, 3000)); /* the very last act of the thread */
    free(mine);
  }
}

static void make_keys(size_t first, size_t end) {
  for (size_t i = first; i < end; i++) CHECK(pthread_key_create(&keys[i], destroy) == 0);
}

static void make_early_keys(void) { make_keys(0, EARLY_KEYS); }

/* Runs before every constructor, the allocator's included. */
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = make_early_keys;

static void *body(void *number) {
  for (size_t i = 0; i < KEYS; i++) {
    baggage *mine = MUST(calloc(1, sizeof *mine));
    mine->key = i;
    pack(mine, (size_t)number + i);
    CHECK(pthread_setspecific(keys[i], mine) == 0);
  }
  return NULL;
}

int main(void) {
  size_t warm_bytes = 0;
  make_keys(EARLY_KEYS, KEYS);
  for (size_t i = 0; i < THREADS; i++) {
    thread_run(body, (void *)i);
    if (i == WARM_UP) warm_bytes = rss_bytes();
  }
  size_t end_bytes = rss_bytes();
  CHECK_MSG(end_bytes < warm_bytes + 2 * MIB, "from %zu to %zu", warm_bytes, end_bytes);
  return 0;
}
