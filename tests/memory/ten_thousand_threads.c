/* argv[1] threads are alive at once and idle, each after a little work with blocks of up to argv[2]
 * bytes.  What becomes resident with the work is at most argv[3] bytes for each.
 *
 * Their stacks are this program's own and cost it the same without hakmem: it measures them by
 * threads that call nothing.  Exit status 77: the system does not allow so many threads. */
#include <stdatomic.h>
#include <stdbool.h>

#include "concurrency/threads.h"
#include "memory/blocks.h"
#include "memory/pages.h"

enum { BLOCKS = 24, DECAY_MS = 200, STACK_BYTES = 32 << 10, EXIT_NOT_ALLOWED = 77 };

static atomic_uint begun;
static atomic_bool may_end, may_work;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

static void wait_for(atomic_bool *flag) {
  pthread_mutex_lock(&lock);
  while (!atomic_load(flag)) pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
}

static void let(atomic_bool *flag) {
  pthread_mutex_lock(&lock);
  atomic_store(flag, true);
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
}

static size_t largest;

static const size_t sizes[] = {16, 48, 100, 300, 700, 2000, 5000};

static size_t size_count(void) {
  size_t count = 0;
  while (count < COUNT_OF(sizes) && sizes[count] <= largest) count++;
  return count;
}

static void work(void) {
  for (size_t i = 0; i < size_count(); i++) {
    char *mine[BLOCKS];
    blocks_come_and_go(mine, BLOCKS, sizes[i]);
  }
}

static void *body(void *unused) {
  volatile char stack[4096]; /* as much as the work needs, so that the first measure has it */
  (void)unused;
  stack[0] = stack[2048] = 0;
  atomic_fetch_add(&begun, 1);
  wait_for(&may_work);
  work();
  atomic_fetch_add(&begun, 1);
  wait_for(&may_end);
  return NULL;
}

static void wait_until_begun(unsigned count) {
  while (atomic_load(&begun) < count) sleep_ms(5);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  unsigned threads = (unsigned)strtoul(argv[1], NULL, 10);
  size_t limit_bytes = strtoul(argv[3], NULL, 10);
  largest = strtoul(argv[2], NULL, 10);
  limit_bytes += more_for_pages(size_count()); /* the thread's own slab of each may be one page */
  pthread_t *started = mmap(NULL, threads * sizeof *started, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  CHECK(started != MAP_FAILED);
  pthread_attr_t small_stack = threads_with_stacks_of(STACK_BYTES);
  for (unsigned i = 0; i < threads; i++) {
    int error = pthread_create(&started[i], &small_stack, body, NULL);
    if (error == EAGAIN || error == ENOMEM) {
      dprintf(STDERR_FILENO, "thread %u: error %d\n", i, error);
      _exit(EXIT_NOT_ALLOWED);
    }
    CHECK(error == 0);
  }
  wait_until_begun(threads);
  size_t start_bytes = rss_bytes();
  let(&may_work);
  wait_until_begun(2 * threads);
  sleep_ms(2 * DECAY_MS);
  free(malloc(2 * MIB));
  size_t now_bytes = rss_bytes(),
         kept_bytes = now_bytes > start_bytes ? now_bytes - start_bytes : 0;
  printf("%zu\n", kept_bytes / threads);
  CHECK_MSG(kept_bytes / threads <= limit_bytes, "%zu bytes for each idle thread",
            kept_bytes / threads);
  let(&may_end);
  for (unsigned i = 0; i < threads; i++) thread_join(started[i]);
  return 0;
}
