/* HAKMEM_LIMIT_HARD is argv[1] MiB.  Four threads, or one (argv[2]), fill memory until NULL and
 * touch all of it: what is resident stays within the limit; after a free there is room again; and
 * so it goes on. */
#include "api/sizes.h"
#include "concurrency/threads.h"
#include "failure/chain.h"
#include "memory/rss.h"

enum { THREADS_MAX = 4, ROUNDS = 4 };

static size_t limit_bytes, base_bytes, thread_count;
static pthread_barrier_t barrier;

static void *body(void *number) {
  static const size_t sizes[] = {200, 6000, 100 * KIB, 2 * MIB, 48, 30000, 1000 * KIB};
  for (size_t round = 0; round < ROUNDS; round++) {
    chain_link *chain = NULL;
    size_t size = sizes[((size_t)number + round) % (sizeof sizes / sizeof sizes[0])];
    size_t got = chain_grow_touched(&chain, size);
    pthread_barrier_wait(&barrier);
    size_t held = rss_bytes() - base_bytes;
    CHECK_MSG(held <= limit_bytes + MIB, "%zu KiB resident", held / KIB);
    if (thread_count == 1)
      CHECK_MSG(got * size >= limit_bytes / 100 * 70, "%zu blocks of %zu", got, size);
    pthread_barrier_wait(&barrier);
    chain_thin(&chain, size, 2);
    size_t again = chain_grow_touched(&chain, size);
    if (thread_count == 1)
      CHECK_MSG(again >= got / 2 * 8 / 10, "%zu of %zu after half of them were freed", again, got);
    chain_free(&chain, size);
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  limit_bytes = strtoul(argv[1], NULL, 10) * MIB;
  thread_count = strtoul(argv[2], NULL, 10);
  CHECK(pthread_barrier_init(&barrier, NULL, (unsigned)thread_count) == 0);
  base_bytes = rss_bytes(); /* the program itself; stacks are a part of the slack */
  pthread_t threads[THREADS_MAX];
  for (size_t i = 1; i < thread_count; i++) threads[i] = thread_start(body, (void *)i);
  body(0);
  for (size_t i = 1; i < thread_count; i++) thread_join(threads[i]);
  void *most = malloc(limit_bytes / 100 * 85); /* what the threads left in their caches is small */
  CHECK(most != NULL);
  free(most);
  CHECK(malloc(limit_bytes) == NULL);
  return 0;
}
