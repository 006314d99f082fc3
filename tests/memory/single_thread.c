/* A program with one thread, to which no helper comes: what it has freed goes back all the same.
 * argv[1]:
 *   server    99 of 100 blocks are freed in no order; then requests come that find all they want
 *             in the magazines
 *   sleeper   all blocks are freed, and the program sleeps at once
 *   bursts    the same burst again and again: what goes back at once is wanted again, and that
 *             is learnt
 *   keeper    memory is to wait longer: HAKMEM_DECAY_MS says so, and nothing goes
 *   swinger   a block of most pages survives, so nothing can go, and large requests come: they
 *             cost what they cost before
 *   locked    likewise, as the program has locked its memory, of which the system takes nothing
 *             then
 * argv[2] the blocks' sizes: largest, the smallest is 16; argv[3] MiB of them. */
#include <time.h>

#include "api/random.h"
#include "memory/blocks.h"
#include "memory/pages.h"

enum { SMALLEST = 16, SURVIVES_IN = 100 };
enum { REQUESTS = 400, REQUEST_BLOCKS = 20, REQUEST_MS = 5, BURSTS = 4 };
enum { SERVER_LEFT_MIB = 20, SLEEPER_LEFT_MIB = 32 };
enum { SWING_BLOCKS = 3000, SWINGS = 200, SWING_BLOCK_BYTES = 1024, SWING_SLOWER_AT_MOST = 6 };

static blocks table;
static uint64_t seed;
static size_t total_mib;

static void fill(size_t total_bytes, size_t largest) {
  size_t bytes = 0;
  seed = random_seed(1);
  for (table.count = 0; bytes < total_bytes; table.count++) {
    size_t size = SMALLEST + random_below(&seed, largest - SMALLEST + 1);
    char *block = MUST(malloc(size));
    for (size_t at = 0; at < size; at += TOUCH_EVERY_BYTES) block[at] = 1;
    block[size - 1] = 1;
    table.at[table.count] = block;
    bytes += size;
  }
}

static void shuffle(void) {
  for (size_t i = table.count; i > 1; i--) {
    size_t other = random_below(&seed, i);
    void *block = table.at[i - 1];
    table.at[i - 1] = table.at[other];
    table.at[other] = block;
  }
}

static void free_all_but_one_in(size_t survives_in) {
  for (size_t i = 0; i < table.count; i++)
    if (survives_in == 0 || i % survives_in != 0) free(table.at[i]);
}

static void serve(void) {
  char *volatile request[REQUEST_BLOCKS];
  for (size_t i = 0; i < REQUEST_BLOCKS; i++) request[i] = malloc(SMALLEST + i * 50);
  for (size_t i = 0; i < REQUEST_BLOCKS; i++) free(request[i]);
}

static void require_at_most(size_t start_bytes, size_t limit_mib) {
  size_t left_mib = rss_above_mib(start_bytes);
  CHECK_MSG(left_mib <= limit_mib, "%zu MiB stay resident", left_mib);
}

/* As many pages keep a block as where they have 4 KiB. */
static void be_server(size_t largest, size_t start_bytes) {
  size_t left_mib = SERVER_LEFT_MIB + more_for_records(total_mib * MIB) / MIB;
  fill(total_mib * MIB, largest);
  shuffle();
  free_all_but_one_in(SURVIVES_IN * page_bytes() / (4 * KIB));
  for (size_t i = 0; i < REQUESTS && rss_above_mib(start_bytes) > left_mib; i++) {
    serve();
    sleep_ms(REQUEST_MS);
  }
  require_at_most(start_bytes, left_mib);
}

static void be_sleeper(size_t largest, size_t start_bytes) {
  fill(total_mib * MIB, largest);
  shuffle();
  free_all_but_one_in(0);
  require_at_most(start_bytes, SLEEPER_LEFT_MIB + more_for_records(total_mib * MIB) / MIB);
}

/* The first one's memory goes back at once, and costs its page faults again; the later ones find it
 * there. */
static void be_bursts(size_t largest, size_t start_bytes) {
  for (size_t i = 0; i < BURSTS; i++) {
    fill(total_mib * MIB, largest);
    free_all_but_one_in(0);
    if (i == 0) { /* it has not run for long, and what it has earned by then may not do for all */
      require_at_most(start_bytes, total_mib / 8);
    }
  }
  CHECK_MSG(rss_above_mib(start_bytes) >= total_mib / 4, "only %zu MiB have been kept",
            rss_above_mib(start_bytes));
}

static void be_keeper(size_t largest, size_t start_bytes) {
  fill(total_mib * MIB, largest);
  free_all_but_one_in(0);
  CHECK(rss_above_mib(start_bytes) >= total_mib / 2);
}

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Processor time of so many requests, each of which takes many blocks and frees them all. */
static double swing(void) {
  static char *volatile request[SWING_BLOCKS];
  double begin = processor_seconds();
  for (size_t round = 0; round < SWINGS; round++) {
    for (size_t i = 0; i < SWING_BLOCKS; i++) {
      request[i] = MUST(malloc(SMALLEST + i * 31 % (SWING_BLOCK_BYTES - SMALLEST)));
      request[i][0] = 1;
    }
    for (size_t i = 0; i < SWING_BLOCKS; i++) free(request[i]);
  }
  return processor_seconds() - begin;
}

static void be_swinger(size_t largest, size_t start_bytes) {
  (void)start_bytes;
  swing();
  double before = swing();
  fill(total_mib * MIB, largest);
  free_all_but_one_in(TOUCH_EVERY_BYTES / largest);
  swing(); /* it is seen that nothing can go */
  double after = swing();
  CHECK_MSG(after <= before * SWING_SLOWER_AT_MOST, "%.3f s instead of %.3f s", after, before);
}

static void be_locked(size_t largest, size_t start_bytes) {
  (void)start_bytes;
  swing();
  double before = swing();
  fill(total_mib * MIB, largest);
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    return; /* a limit forbids it */
  }
  free_all_but_one_in(SURVIVES_IN);
  swing();
  double after = swing();
  CHECK_MSG(after <= before * SWING_SLOWER_AT_MOST, "%.3f s instead of %.3f s", after, before);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*be)(size_t, size_t);
  } kinds[] = {{"server", be_server}, {"sleeper", be_sleeper}, {"bursts", be_bursts},
               {"keeper", be_keeper}, {"swinger", be_swinger}, {"locked", be_locked}};
  CHECK(argc == 4);
  size_t largest = strtoul(argv[2], NULL, 10);
  total_mib = strtoul(argv[3], NULL, 10);
  table = blocks_table(total_mib * MIB, largest / 3);
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    if (strcmp(argv[1], kinds[i].name) == 0) {
      kinds[i].be(largest, rss_bytes());
      return 0;
    }
  }
  CHECK_MSG(argc == 0, "no such kind: %s", argv[1]);
}
