/* One thread allocates and another frees what lies beside it, all the time: nothing is wrong. */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "concurrency/threads.h"

enum { PLACES = 256, SECONDS = 2 };

static _Atomic(void *) places[PLACES];
static atomic_bool stop;
static const size_t sizes[] = {24, 120};

static void *make(void *unused) {
  for (size_t i = 0; !atomic_load(&stop); i++) {
    if (atomic_load(&places[i % PLACES])) continue;
    size_t size = sizes[i / PLACES % COUNT_OF(sizes)];
    void *block = MUST(malloc(size));
    memset(block, 'A', size);
    atomic_store(&places[i % PLACES], block);
  }
  return unused;
}

static void *take(void *unused) {
  for (size_t i = 0; !atomic_load(&stop); i++) free(atomic_exchange(&places[i % PLACES], NULL));
  return unused;
}

int main(void) {
  pthread_t maker = thread_start(make, NULL), taker = thread_start(take, NULL);
  struct timespec moment = {.tv_sec = SECONDS};
  nanosleep(&moment, NULL);
  atomic_store(&stop, true);
  thread_join(maker);
  thread_join(taker);
  return 0;
}
