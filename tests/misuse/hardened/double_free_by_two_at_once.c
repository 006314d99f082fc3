/* [HEAP]: two threads free the same block, of a heap of that name, at the same moment, again and
 * again: each time one of them is told so, and of nothing else.  Run with HAKMEM_ON_MISUSE=warn. */
#include <sched.h>
#include <stdatomic.h>

#include "concurrency/threads.h"
#include "hakmem/hakmem.h"
#include "misuse/hide.h"

enum { ROUNDS = 500, MOMENTS = 30 };

static char *_Atomic block;
static atomic_uint arrived, done;

static void meet(atomic_uint *count, unsigned round) {
  atomic_fetch_add(count, 1);
  for (unsigned turn = 1; atomic_load(count) < 2 * (round + 1); turn++)
    if (turn % 1000 == 0) sched_yield();
}

/* Who comes last to the meeting goes on first: for a moment of any length. */
static void linger(unsigned moment) {
  for (volatile unsigned turn = 0; turn < moment; turn++) continue;
}

static void *free_too(void *unused) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    meet(&arrived, round);
    linger(round * 7 % MOMENTS);
    free(hide(atomic_load(&block)));
    meet(&done, round);
  }
  return unused;
}

int main(int argc, char **argv) {
  static const size_t sizes[] = {40, 120, 1000, 8000};
  hak_heap *heap = argc > 1 ? hak_heap_new(argv[1]) : NULL;
  pthread_t other = thread_start(free_too, NULL);
  for (unsigned round = 0; round < ROUNDS; round++) {
    size_t size = sizes[round % COUNT_OF(sizes)];
    char *bytes = heap ? hak_heap_malloc(heap, size) : malloc(size);
    CHECK(bytes != NULL);
    memset(bytes, 'A', size);
    atomic_store(&block, bytes);
    meet(&arrived, round);
    linger(round * 11 % MOMENTS);
    free(hide(bytes));
    meet(&done, round);
  }
  thread_join(other);
  CHECK(!heap || hak_heap_destroy(heap));
  return 0;
}
