/* Pages of somebody else come and go at random places around the allocator's memory while it grows,
 * gives back under pressure and grows again.  No request fails, no block and no foreign page is
 * harmed. */
#include "api/random.h"
#include "failure/foreign.h"

enum { ROUNDS = 12, BLOCKS = 4000 };

static struct {
  unsigned char *block;
  size_t size;
} held[BLOCKS];

static size_t draw_size(uint64_t *state) {
  uint64_t kind = random_next(state) % 100;
  if (kind < 80) return 1 + random_next(state) % 2000;
  if (kind < 95) return 1 + random_next(state) % (100 * KIB);
  if (kind < 99) return 1 + random_next(state) % MIB;
  return 1 + random_next(state) % (20 * MIB);
}

static void take(size_t index, uint64_t *state) {
  size_t size = draw_size(state);
  unsigned char *block = malloc(size);
  CHECK_MSG(block != NULL, "%zu bytes", size);
  block[0] = block[size - 1] = (unsigned char)index;
  foreign_note(block, size);
  held[index].block = block;
  held[index].size = size;
}

static void give(size_t index) {
  unsigned char *block = held[index].block;
  if (block == NULL) return;
  CHECK(block[0] == (unsigned char)index && block[held[index].size - 1] == (unsigned char)index);
  free(block);
  held[index].block = NULL;
}

static void scatter(uint64_t *state) {
  uintptr_t span = foreign_highest - foreign_lowest + 64 * MIB; /* beyond the frontier, too */
  for (int page = 0; page < 200; page++)
    foreign_try_page(foreign_lowest + random_next(state) % span);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  uint64_t state = strtoul(argv[1], NULL, 10);
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < BLOCKS; i++)
      if (held[i].block == NULL) take(i, &state);
    scatter(&state);
    for (size_t i = 0; i < BLOCKS; i++)
      if (round % 4 == 3 || random_next(&state) % 4) give(i);
    if (round % 2) foreign_press();
    scatter(&state);
    foreign_check();
    if (round % 5 == 4) foreign_release();
  }
  for (size_t i = 0; i < BLOCKS; i++) give(i);
  foreign_release();
  return 0;
}
