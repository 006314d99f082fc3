/* Threads make, use and destroy arenas, and ask for figures, while others do and the process
 * forks. */
#include <pthread.h>
#include <sys/wait.h>

#include "api/random.h"
#include "jemalloc/mallctl.h"

enum { THREADS = 4, ROUNDS = 300, HELD = 50, FORKS = 5 };

static void act(const char *format, unsigned arena) {
  char name[64];
  snprintf(name, sizeof name, format, arena);
  CHECK_MSG(mallctl(name, NULL, NULL, NULL, 0) == 0, "%s", name);
}

static void use_arena(uint64_t *random) {
  void *held[HELD];
  unsigned arena = GET("arenas.create", unsigned);
  for (size_t at = 0; at < HELD; at++) {
    held[at] = MUST(mallocx(1 + random_below(random, 100000), ARENA(arena)));
    if (at % 3 == 0) dallocx(held[at], 0);
  }
  advance_epoch();
  CHECK(GET("stats.allocated", size_t) <= GET("stats.mapped", size_t) + (64 << 20));
  act("arena.%u.reset", arena);
  SET("thread.arena", unsigned, arena);
  MUST(malloc(100));
  SET("thread.arena", unsigned, 0);
  act("arena.%u.destroy", arena);
}

static void *work(void *seed) {
  uint64_t random = random_seed((uintptr_t)seed);
  for (size_t round = 0; round < ROUNDS; round++) {
    use_arena(&random);
    void *block = MUST(mallocx(1 + random_below(&random, 1000), NO_CACHE));
    block = MUST(rallocx(block, 1 + random_below(&random, 100000), NO_CACHE));
    sdallocx(block, 1, NO_CACHE | LG_64);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (uintptr_t at = 0; at < THREADS; at++)
    CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
  for (unsigned number = 0; number < FORKS; number++) {
    int status;
    pid_t child = fork();
    if (!child) {
      work(NULL);
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  for (unsigned at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  return 0;
}
