/* A chain of 20 generations: each child forks the next, with a thread busy in every generation, and
 * the last one's status travels all the way up. */
#include <stdatomic.h>
#include <stdbool.h>

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { GENERATIONS = 20, LIMIT_S = 100, END = 42 };

static atomic_bool started;

static void *work(void *unused) {
  for (;;) {
    for (size_t i = 0; i < TIER_SIZES; i++) {
      void *block = malloc(tier_sizes[i]);
      CHECK_MSG(block != NULL, "%zu bytes", tier_sizes[i]);
      free(block);
    }
    atomic_store(&started, true);
  }
  return unused;
}

static int generation(int number) {
  void *block = MUST(malloc(1000));
  if (number == GENERATIONS) {
    free(block);
    return END;
  }
  atomic_store(&started, false);
  thread_start(work, NULL);
  while (!atomic_load(&started)) usleep(50);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    free(block);
    exit(generation(number + 1));
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status));
  free(block);
  return WEXITSTATUS(status);
}

int main(void) {
  alarm(LIMIT_S);
  CHECK(generation(0) == END);
  return 0;
}
