/* The process ends while other threads allocate and free: argv[1] says how.
 *   return        main returns
 *   exit          another thread calls exit
 *   quick_exit    main calls quick_exit
 *   pthread_exit  main ends as a thread, the last worker ends the process */
#include <stdatomic.h>

#include "api/random.h"
#include "api/sizes.h"
#include "concurrency/threads.h"

enum { WORKERS = 4, SLOTS = 200, WORK_BEFORE_THE_END = 20000 };

static atomic_size_t done;
static const char *how;

static void step(uint64_t *random, void *slots[]) {
  size_t slot = random_below(random, SLOTS);
  free(slots[slot]);
  slots[slot] = MUST(malloc(tier_sizes[random_below(random, TIER_SIZES)]));
  *(char *)slots[slot] = 1;
  atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
}

static void *work(void *number) {
  void *slots[SLOTS] = {0};
  uint64_t random = random_seed((size_t)number);
  for (;;) {
    step(&random, slots);
    if (number == NULL && atomic_load(&done) > 2 * WORK_BEFORE_THE_END) {
      if (strcmp(how, "pthread_exit") == 0 || strcmp(how, "exit") == 0) exit(0);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  how = argv[1];
  for (size_t i = 0; i < WORKERS; i++) thread_start(work, (void *)i);
  while (atomic_load(&done) < WORK_BEFORE_THE_END) usleep(100);
  if (strcmp(how, "return") == 0) return 0;
  if (strcmp(how, "quick_exit") == 0) quick_exit(0);
  if (strcmp(how, "pthread_exit") == 0) pthread_exit(NULL);
  for (;;) pause();
}
