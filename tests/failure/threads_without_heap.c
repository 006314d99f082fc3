/* Threads whose first call finds no memory for a heap of their own: malloc says NULL and ENOMEM,
 * free of others' blocks works and makes room, and then malloc works too. */
#include "api/sizes.h"
#include "concurrency/threads.h"
#include "failure/chain.h"
#include "failure/limit.h"

enum { THREADS = 40, LIMIT_MIB = 192 };

static pthread_barrier_t exhausted;
static chain_link *chain;
static pthread_mutex_t chain_lock = PTHREAD_MUTEX_INITIALIZER;
static const size_t size = 3000;

static chain_link *take(void) {
  pthread_mutex_lock(&chain_lock);
  chain_link *block = chain;
  chain = block->next;
  pthread_mutex_unlock(&chain_lock);
  return block;
}

static void *body(void *unused) {
  pthread_barrier_wait(&exhausted);
  errno = 0;
  void *mine = malloc(size);
  CHECK(mine != NULL || errno == ENOMEM);
  for (int i = 0; i < 200; i++) {
    chain_link *theirs = take();
    CHECK(stamp_holds(theirs->stamp, chain_stamp_bytes(size), (uintptr_t)theirs));
    free(theirs);
  }
  free(mine);
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  limit_and_restart(argv, RLIMIT_AS, LIMIT_MIB * MIB);
  pthread_t threads[THREADS];
  pthread_attr_t small_stack = threads_with_stacks_of(64 * KIB);
  CHECK(pthread_barrier_init(&exhausted, NULL, THREADS + 1) == 0);
  for (size_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], &small_stack, body, NULL) == 0);
  CHECK(chain_grow(&chain, size) > (size_t)THREADS * 300);
  for (size_t bytes = size; bytes >= 16; bytes /= 2) { /* the last crumbs too; they are not freed */
    chain_link *crumbs = NULL;
    chain_grow(&crumbs, bytes);
  }
  pthread_barrier_wait(&exhausted);
  for (size_t i = 0; i < THREADS; i++) thread_join(threads[i]);
  chain_free(&chain, size);
  CHECK(chain_grow(&chain, size) > 1000);
  chain_free(&chain, size);
  return 0;
}
