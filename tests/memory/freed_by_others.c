/* An owner fills 96 MiB with blocks of one size and then
 *   sleeps (argv[1] `sleeping`), ends (`ended`), or goes on allocating a little (`awake`);
 * main frees all of it and allocates as much again, several times over: of the same size (argv[2])
 * at once, or of another (argv[3]) after a decay.  RSS must not grow as if the owner's memory were
 * lost.  The test sets HAKMEM_DECAY_MS=200. */
#include <stdatomic.h>
#include <stdbool.h>

#include "concurrency/threads.h"
#include "memory/blocks.h"
#include "memory/pages.h"

enum { TOTAL_MIB = 96, DECAY_MS = 200, ROUNDS = 3 };

static const char *owner_then;
static blocks owned;
static atomic_bool filled, stop;

static void *own(void *unused) {
  blocks_fill(&owned);
  atomic_store(&filled, true);
  while (strcmp(owner_then, "sleeping") == 0) pause();
  while (strcmp(owner_then, "awake") == 0 && !atomic_load(&stop)) {
    free(malloc(owned.size));
    sleep_ms(1);
  }
  return unused;
}

/* On a busy machine a round comes late. */
static void wait_for_decay(size_t start_bytes) {
  for (int turn = 0; turn < 15 && (!turn || rss_above_mib(start_bytes) > TOTAL_MIB / 3); turn++) {
    sleep_ms(2 * DECAY_MS);
    free(malloc(2 * MIB)); /* a slow path, where memory goes back without a helper thread */
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  owner_then = argv[1];
  size_t size = strtoul(argv[2], NULL, 10), other_size = strtoul(argv[3], NULL, 10);
  owned = blocks_table(TOTAL_MIB * MIB, size);
  blocks again = blocks_table(TOTAL_MIB * MIB, other_size);
  /* A block of whole pages is resident as they are. */
  size_t resident = other_size > page_bytes() ? in_pages(other_size) : other_size;
  size_t start_bytes = rss_bytes(), limit_mib = TOTAL_MIB * resident / other_size * 4 / 3 + 8;
  pthread_t owner = thread_start(own, NULL);
  while (!atomic_load(&filled)) sleep_ms(1);
  if (strcmp(owner_then, "ended") == 0) thread_join(owner);
  CHECK_MSG(rss_above_mib(start_bytes) <= limit_mib, "%zu MiB to begin with",
            rss_above_mib(start_bytes));
  blocks_free(&owned);
  for (int round = 0; round < ROUNDS; round++) {
    if (size != other_size) wait_for_decay(start_bytes);
    blocks_fill(&again);
    size_t resident_mib = rss_above_mib(start_bytes);
    CHECK_MSG(resident_mib <= limit_mib, "%zu MiB resident for %d live, round %d", resident_mib,
              TOTAL_MIB, round);
    blocks_free(&again);
  }
  if (strcmp(owner_then, "awake") == 0) {
    atomic_store(&stop, true);
    thread_join(owner);
  }
  return 0;
}
