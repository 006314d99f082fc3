/* Every second block is freed, and those left are moved: RSS falls to what lives, and does not rise
 * in between, with a random order of the blocks as in a hash table. */
#include "api/random.h"
#include "hakmem/hakmem.h"
#include "memory/blocks.h"

enum { BLOCKS = 250000, BYTES = 300, PER_ASK = 256, LOOKS = 64, PASSES_MAX = 4, LIMIT_MS = 5000 };
static uint64_t *held[BLOCKS]; /* each knows its number */

static void fill_and_free_half(void) {
  uint64_t random = random_seed(1);
  for (uint64_t at = 0; at < BLOCKS; at++) {
    held[at] = memset(MUST(malloc(BYTES)), (int)at, BYTES);
    *held[at] = at;
  }
  for (size_t at = BLOCKS - 1; at; at--) {
    size_t other = random_below(&random, at + 1);
    uint64_t *block = held[at];
    held[at] = held[other];
    held[other] = block;
  }
  for (size_t at = BLOCKS / 2; at < BLOCKS; at++) free(held[at]);
}

/* Returns the number of moved blocks, and the highest RSS in between. */
static size_t move_all(size_t *peak) {
  unsigned char answers[PER_ASK];
  size_t moved = 0, count = BLOCKS / 2;
  CHECK(hak_move_begin());
  for (size_t from = 0; from < count; from += PER_ASK) {
    size_t asked = count - from < PER_ASK ? count - from : PER_ASK;
    moved += hak_worth_moving((void **)&held[from], asked, answers);
    for (size_t at = 0; at < asked; at++) {
      if (!answers[at]) continue;
      uint64_t *block = memcpy(MUST(malloc(BYTES)), held[from + at], BYTES);
      free(held[from + at]);
      held[from + at] = block;
    }
    if (from / PER_ASK % (count / PER_ASK / LOOKS) == 0 && rss_bytes() > *peak) *peak = rss_bytes();
  }
  hak_move_end();
  return moved;
}

int main(void) {
  size_t start = rss_bytes(), live = BLOCKS / 2 * malloc_usable_size(MUST(malloc(BYTES)));
  fill_and_free_half();
  size_t before = rss_bytes(), peak = 0, most = start + live + live / 10 + (8 << 20);
  CHECK(before > most);
  for (int pass = 0; move_all(&peak); pass++) CHECK(pass < PASSES_MAX);
  for (int ms = 0; ms < LIMIT_MS && rss_bytes() > most; ms += 10) {
    sleep_ms(10);
    hak_purge(false);
  }
  for (size_t at = 0; at < BLOCKS / 2; at++)
    CHECK(((unsigned char *)held[at])[BYTES - 1] == (unsigned char)*held[at]);
  CHECK_MSG(peak <= before + before / 20, "%zu rose to %zu", before, peak);
  CHECK_MSG(rss_bytes() <= most, "%zu of %zu", rss_bytes(), most);
  return 0;
}
