/* A program grows with blocks of one size (argv[1]), frees nine tenths, and grows again with
 * another size (argv[2]).  argv[3]:
 *   at-once    immediately
 *   aged       after a decay (the test sets HAKMEM_DECAY_MS=200)
 *   scattered  immediately, with the survivors spread over all the memory, when only the same size
 *              can use the holes */
#include "memory/blocks.h"

enum { TOTAL_MIB = 96, SLACK_MIB = 8, DECAY_MS = 200 };

static void free_nine_tenths(blocks *table, int scattered) {
  for (size_t i = 0; i < table->count; i++) {
    if (scattered ? i % 10 != 0 : i < table->count / 10 * 9) {
      free(table->at[i]);
      table->at[i] = NULL;
    }
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  int scattered = strcmp(argv[3], "scattered") == 0;
  blocks first = blocks_table(TOTAL_MIB * MIB, strtoul(argv[1], NULL, 10));
  blocks second = blocks_table(TOTAL_MIB * MIB / 10 * 9, strtoul(argv[2], NULL, 10));
  size_t start_bytes = rss_bytes(), limit_mib = TOTAL_MIB * 4 / 3 + SLACK_MIB;
  blocks_fill(&first);
  free_nine_tenths(&first, scattered);
  if (strcmp(argv[3], "aged") == 0) {
    sleep_ms(2 * DECAY_MS);
    free(malloc(2 * MIB)); /* a slow path, where memory goes back without a helper thread */
  }
  blocks_fill(&second);
  size_t resident_mib = rss_above_mib(start_bytes);
  CHECK_MSG(resident_mib <= limit_mib, "%zu MiB resident for %d live", resident_mib, TOTAL_MIB);
  blocks_free(&second);
  blocks_free(&first);
  return 0;
}
