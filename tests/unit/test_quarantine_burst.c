/* src/cache/quarantine: what waits in the quarantine of a program with one thread goes on waiting
 * when a burst has ended. */
#include "cache/quarantine.h"

#include "heaps.h"

enum { BLOCK_BYTES = 100, BLOCKS = 600000, FEW = 300, LATER = 1000 };

static uint32_t waiting(void) { return load_relaxed(&heap_of_thread->quarantine->block_count); }

CHILD_TEST(keep_what_waits) {
  static void *blocks[BLOCKS];
  os_fake.is_multi_threaded = false;
  start_hardened(1);
  for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = must_malloc(BLOCK_BYTES);
  uint32_t least = UINT32_MAX;
  for (unsigned index = 0; index < BLOCKS; index++) {
    hak_free(blocks[index]);
    if (index == QUARANTINE_BLOCKS) least = waiting();
    if (waiting() < least) least = waiting();
  }
  for (unsigned time = 0; time < LATER; time++) { /* it has stopped: its end is seen */
    for (unsigned index = 0; index < FEW; index++) blocks[index] = must_malloc(BLOCK_BYTES);
    for (unsigned index = 0; index < FEW; index++) hak_free(blocks[index]);
    if (waiting() < least) least = waiting();
  }
  if (least < QUARANTINE_BLOCKS) fail_msg("%u blocks waited", least);
}
