/* After everything was freed and a decay has passed, RSS is within a few MiB of the start.
 * argv[1] says what brings it back:
 *   helper     nothing: the program sleeps, the helper thread works
 *   next-calls a few calls that take the slow path, a step of the work in each
 *   trim       malloc_trim(0), at once
 * argv[2] says who had allocated: `main`, or `threads` that ended, or `sleepers` that still exist
 * and may keep a little in their magazines. The test sets HAKMEM_DECAY_MS=200. */
#include <stdatomic.h>
#include <stdbool.h>

#include "concurrency/threads.h"
#include "memory/blocks.h"

enum { DECAY_MS = 200, LIMIT_MS = 5000, THREADS = 4, FEW_MIB = 8, USED_MIB = 160, CALLS = 40 };

static const size_t sizes[] = {24, 64, 500, 1024, 4000, 20000, 100 * KIB, 700 * KIB, 3 * MIB};
static atomic_uint done;
static size_t limit_mib = FEW_MIB;

static void use_all_tiers(size_t total_bytes) {
  blocks tables[COUNT_OF(sizes)];
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    tables[i] = blocks_table(total_bytes / COUNT_OF(sizes), sizes[i]);
    blocks_fill(&tables[i]);
  }
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    blocks_free(&tables[i]);
    blocks_unmap(&tables[i]);
  }
}

static void *use_in_thread(void *stay) {
  use_all_tiers(USED_MIB * MIB / THREADS);
  atomic_fetch_add(&done, 1);
  while (stay != NULL) pause();
  return NULL;
}

static void use(const char *who) {
  if (strcmp(who, "main") == 0) {
    use_all_tiers(USED_MIB * MIB);
    return;
  }
  bool stay = strcmp(who, "sleepers") == 0;
  limit_mib += stay ? THREADS * 2 : 0;
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++)
    threads[i] = thread_start(use_in_thread, stay ? threads : NULL);
  while (atomic_load(&done) < THREADS) sleep_ms(1);
  for (size_t i = 0; !stay && i < THREADS; i++) thread_join(threads[i]);
}

static void bring_back(const char *how, size_t start_bytes) {
  if (strcmp(how, "helper") == 0) {
    for (int ms = 0; ms < LIMIT_MS && rss_above_mib(start_bytes) > limit_mib; ms += DECAY_MS / 2)
      sleep_ms(DECAY_MS / 2);
  } else if (strcmp(how, "next-calls") == 0) {
    sleep_ms(2 * DECAY_MS);
    for (int call = 0; call < CALLS; call++) {
      free(malloc(2 * MIB)); /* untouched: adds nothing itself */
    }
  } else {
    malloc_trim(0);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  size_t start_bytes = rss_bytes();
  use(argv[2]);
  bring_back(argv[1], start_bytes);
  size_t left_mib = rss_above_mib(start_bytes);
  CHECK_MSG(left_mib <= limit_mib, "%zu MiB stay resident", left_mib);
  return 0;
}
