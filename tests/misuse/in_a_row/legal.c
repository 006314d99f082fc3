/* legal PATTERN: what looks like a block freed twice in a row, and is not.  Says nothing; ends with
 * status 0, or 1 where two holders have one block at a time. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "misuse/hide.h"
#include "ways.h"

enum { SIZES = 12, THREADS = 4, SLOTS = 256 };
static const size_t sizes[SIZES] = {0,    1,     8,     64,     100,    1000,
                                    5000, 30000, 40000, 300000, 900000, 3000000};

/* The last in is the first out: every free is of what the free before was of. */
WAY(lifo) {
  for (int turn = 0; turn < 3000; turn++)
    for (int i = 0; i < SIZES; i++) free(hide(malloc(sizes[i])));
}

/* Down to an empty magazine and up again, in both orders, with what was popped left in its
 * slots. */
WAY(popped_slots) {
  enum { MOST = 64 };
  void *blocks[MOST];
  for (int i = 0; i < SIZES - 3; i++)
    for (int turn = 0; turn < MOST * 8; turn++) {
      int count = turn % MOST + 1;
      for (int at = 0; at < count; at++) blocks[at] = malloc(sizes[i]);
      for (int at = 0; at < count; at++) free(blocks[turn / MOST % 2 ? at : count - 1 - at]);
    }
}

/* A block that realloc left in place, one that it moved, and the place that it moved from. */
WAY(after_realloc) {
  for (int turn = 0; turn < 300; turn++)
    for (int i = 0; i < SIZES; i++) {
      char *block = malloc(sizes[i]);
      free(hide(realloc(hide(block), sizes[i] + 1)));
      block = malloc(sizes[i]);
      char *moved = realloc(hide(block), sizes[i] * 2 + 4000);
      char *again = malloc(sizes[i]);
      free(hide(again));
      free(hide(moved));
    }
}

/* Slabs change their class: a block lies where one of another class did, whose address an older
 * slot still has. */
WAY(other_class) {
  static const size_t small[] = {8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256};
  enum { KINDS = sizeof small / sizeof *small };
  for (int turn = 0; turn < 200; turn++)
    for (int kind = 0; kind < KINDS; kind++) {
      void *blocks[4], *two[2];
      for (int at = 0; at < 4; at++) blocks[at] = malloc(small[kind]);
      for (int at = 4; at--;) free(blocks[at]);
      malloc_trim(0);
      for (int at = 0; at < 2; at++) two[at] = malloc(small[(kind + 1) % KINDS]);
      for (int at = 0; at < 2; at++) free(hide(two[(at + turn) % 2]));
      malloc_trim(0);
    }
}

/* Threads that replace blocks of all sizes and hand them to each other: each block is its holder's
 * alone. */
struct block {
  uint64_t size, word;
};
static struct block *slots[THREADS][SLOTS];

static struct block *make(size_t bytes) {
  struct block *block = malloc(sizeof *block + bytes);
  block->size = bytes;
  block->word = (uintptr_t)block ^ bytes;
  if (bytes) ((char *)(block + 1))[bytes - 1] = (char)(uintptr_t)block;
  return block;
}

static bool is_whole(struct block *block) {
  size_t bytes = block->size;
  bool is_word = block->word == ((uintptr_t)block ^ bytes);
  bool is_end = !bytes || ((char *)(block + 1))[bytes - 1] == (char)(uintptr_t)block;
  memset(block, 0, sizeof *block);
  return is_word && is_end;
}

static void *replace(void *number) {
  uintptr_t own = (uintptr_t)number, broken = 0;
  uint64_t random = own + 1;
  for (int turn = 0; turn < 40000; turn++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    uintptr_t thread = random >> 60 < 10 ? own : random >> 50 & (THREADS - 1);
    struct block **slot = &slots[thread][random >> 40 & (SLOTS - 1)];
    struct block *fresh = make(sizes[(random >> 32 & 0xff) % (SIZES - 2)]);
    struct block *old = __atomic_exchange_n(slot, fresh, __ATOMIC_ACQ_REL);
    if (!old) continue;
    broken += !is_whole(old);
    free(old);
  }
  return (void *)broken;
}

static bool is_broken;

WAY(many_threads) {
  for (int turn = 0; turn < 3; turn++) { /* others go on with the ended ones' heaps */
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, replace, (void *)i);
    for (int i = 0; i < THREADS; i++) {
      void *result;
      pthread_join(threads[i], &result);
      is_broken |= result != NULL;
    }
  }
}

/* One block goes round: each thread frees it, allocates, and has the same. */
static void *one_block(void *unused) {
  for (int turn = 0; turn < 20000; turn++) {
    struct block *mine = make(48);
    struct block *other = __atomic_exchange_n(&slots[0][0], mine, __ATOMIC_ACQ_REL);
    if (other) free(hide(other));
    free(hide(malloc(64)));
  }
  return unused;
}

WAY(passed_round) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, one_block, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **arguments) {
  if (count < 2 || !run_way(arguments[1])) return 2;
  return is_broken;
}
