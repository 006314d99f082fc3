/* A program in small that bears any refusal: a request that fails says NULL and ENOMEM, and what
 * lives is unharmed. faults.c, loaded before the library, refuses; afterwards all of it must work.
 * Prints how many calls were refused. */
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

enum { ROUNDS = 3, THREAD_BLOCKS = 200, STAMP_MAX_BYTES = 256 };

extern unsigned long faults_stop(void) __attribute__((weak));

static bool may_fail = true;

static size_t stamped(size_t bytes) { return bytes < STAMP_MAX_BYTES ? bytes : STAMP_MAX_BYTES; }

static void *judge(void *block) {
  CHECK_MSG(block != NULL || (may_fail && errno == ENOMEM), "errno %d", errno);
  return block;
}

static void every_tier(void) {
  void *blocks[TIER_SIZES];
  for (size_t i = 0; i < TIER_SIZES; i++) {
    size_t bytes = tier_sizes[i];
    errno = 0;
    blocks[i] = judge(i % 3 == 0 ? calloc(1, bytes) : malloc(bytes));
    if (blocks[i] != NULL) {
      CHECK(i % 3 != 0 || all_bytes_are(blocks[i], bytes, 0));
      stamp_write(blocks[i], stamped(bytes), i);
    }
  }
  for (size_t i = 0; i < TIER_SIZES; i++) {
    CHECK(blocks[i] == NULL || stamp_holds(blocks[i], stamped(tier_sizes[i]), i));
    free(blocks[i]);
  }
}

static void grow_and_shrink(void) {
  static const size_t sizes[] = {100, 5000, 100 * KIB, 5 * MIB, 9 * MIB, 20 * MIB, 6 * MIB, 50};
  void *block = NULL, *neighbour = NULL;
  size_t bytes = 0;
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    if (sizes[i] == 9 * MIB) {
      neighbour = malloc(40 * MIB); /* no room to grow where the block is: its pages move */
    }
    errno = 0;
    void *resized = judge(realloc(block, sizes[i]));
    size_t kept = resized != NULL && sizes[i] < bytes ? sizes[i] : bytes;
    CHECK(block == NULL || stamp_holds(resized != NULL ? resized : block, stamped(kept), 7));
    if (resized != NULL) {
      block = resized;
      bytes = sizes[i];
      stamp_write(block, stamped(bytes), 7);
    }
  }
  free(neighbour);
  free(block);
}

static void *others_blocks(void *table) {
  void **blocks = table;
  for (size_t i = 0; i < THREAD_BLOCKS; i++) {
    size_t bytes = 16 + i * 40;
    CHECK(blocks[i] == NULL || stamp_holds(blocks[i], stamped(bytes), i));
    free(blocks[i]);
    errno = 0;
    blocks[i] = judge(malloc(bytes));
    if (blocks[i] != NULL) stamp_write(blocks[i], stamped(bytes), i);
  }
  return NULL;
}

static void hand_over(void) {
  static void *blocks[THREAD_BLOCKS];
  for (int life = 0; life < 3; life++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, others_blocks, blocks) == 0) thread_join(thread);
    others_blocks(blocks);
  }
  for (size_t i = 0; i < THREAD_BLOCKS; i++) {
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

static void round_of_all(void) {
  every_tier();
  grow_and_shrink();
  hand_over();
  malloc_trim(0);
}

int main(void) {
  for (int round = 0; round < ROUNDS; round++) round_of_all();
  unsigned long refused = faults_stop != NULL ? faults_stop() : 0;
  may_fail = false;
  round_of_all();
  printf("%lu\n", refused);
  return 0;
}
