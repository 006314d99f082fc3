/* A process with many heaps, half of whose threads have ended, forks.  In the child several threads
 * allocate for the first time at once: they take over heaps while those of the threads that did not
 * come along are being parked. */
#include "concurrency/threads.h"

enum { THREADS = 120, CHILD_THREADS = 6, BLOCKS = 200, ROUNDS = 100, STACK_BYTES = 64 << 10 };
enum { CHILD_LIMIT_S = 20 };

static pthread_barrier_t have_begun, may_allocate;

static size_t size_of(size_t index) { return 16 + index % 12 * 32; }

static void fill(char **blocks, char mark) {
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = MUST(malloc(size_of(i)));
    memset(blocks[i], mark, size_of(i));
  }
}

static void empty(char **blocks, char mark) {
  for (size_t i = 0; i < BLOCKS; i++) {
    CHECK_MSG(blocks[i][0] == mark && blocks[i][size_of(i) - 1] == mark, "a block is shared");
    free(blocks[i]);
  }
}

static void *have_a_heap(void *number) {
  char *blocks[BLOCKS];
  fill(blocks, 1);
  empty(blocks, 1);
  pthread_barrier_wait(&have_begun);
  while ((size_t)number % 2) pause();
  return NULL;
}

static void *allocate_in_child(void *number) {
  char *blocks[BLOCKS], mark = (char)((size_t)number + 1);
  pthread_barrier_wait(&may_allocate);
  for (int round = 0; round < ROUNDS; round++) {
    fill(blocks, mark);
    empty(blocks, mark);
  }
  return NULL;
}

static void child(void) {
  alarm(CHILD_LIMIT_S);
  CHECK(pthread_barrier_init(&may_allocate, NULL, CHILD_THREADS) == 0);
  threads_run(CHILD_THREADS, allocate_in_child);
  _exit(0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  pthread_t threads[THREADS];
  pthread_attr_t attributes = threads_with_stacks_of(STACK_BYTES);
  CHECK(pthread_barrier_init(&have_begun, NULL, THREADS + 1) == 0);
  for (size_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], &attributes, have_a_heap, (void *)i) == 0);
  pthread_barrier_wait(&have_begun);
  for (size_t i = 0; i < THREADS; i += 2) thread_join(threads[i]);
  for (size_t fork_number = strtoul(argv[1], NULL, 10); fork_number; fork_number--) {
    pid_t pid = fork();
    if (pid == 0) child();
    child_join(pid);
  }
  _exit(0);
}
