/* Threads read long lines (a stream's lock is held while its holder waits in malloc), another
 * flushes all streams (it holds the list of streams, and waits for a stream), and others fork
 * (which takes the list).  Whoever holds a lock of malloc's when fork takes the list closes the
 * circle: glibc's bug 19431. */
#include <stdatomic.h>
#include <stdbool.h>

#include "concurrency/threads.h"

enum { READERS = 8, FORKERS = 4, LINE_BYTES = 50000, LIMIT_S = 30 };

static atomic_bool stop;
static atomic_uint forks;
static char line[LINE_BYTES + 1];

static bool is_going(void) { return !atomic_load_explicit(&stop, memory_order_relaxed); }

/* Each line into a buffer of its own, which getline has to grow. */
static void *read_lines(void *unused) {
  while (is_going()) {
    FILE *stream = MUST(fmemopen(line, LINE_BYTES, "r"));
    char *read = NULL;
    size_t room = 0;
    CHECK(getline(&read, &room, stream) == LINE_BYTES);
    free(read);
    CHECK(fclose(stream) == 0);
  }
  return unused;
}

static void *flush_all(void *unused) {
  while (is_going()) CHECK(fflush(NULL) == 0);
  return unused;
}

static void *fork_again_and_again(void *forks_wanted) {
  while (atomic_fetch_add(&forks, 1) < (size_t)forks_wanted) {
    pid_t pid = fork();
    if (pid == 0) {
      alarm(LIMIT_S);
      free(malloc(LINE_BYTES));
      _exit(0);
    }
    child_join(pid);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  pthread_t readers[READERS], forkers[FORKERS];
  alarm(LIMIT_S * 2);
  for (size_t i = 0; i < LINE_BYTES; i++) line[i] = 'x';
  for (size_t i = 0; i < READERS; i++) readers[i] = thread_start(read_lines, NULL);
  pthread_t flusher = thread_start(flush_all, NULL);
  size_t forks_wanted = strtoul(argv[1], NULL, 10);
  for (size_t i = 0; i < FORKERS; i++)
    forkers[i] = thread_start(fork_again_and_again, (void *)forks_wanted);
  for (size_t i = 0; i < FORKERS; i++) thread_join(forkers[i]);
  atomic_store(&stop, true);
  for (size_t i = 0; i < READERS; i++) thread_join(readers[i]);
  thread_join(flusher);
  return 0;
}
