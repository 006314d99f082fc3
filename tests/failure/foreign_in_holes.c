/* Memory is short, the allocator gives addresses back, and somebody else maps pages into the
 * holes.  Every later request is served all the same, of any size, and the others' pages stay as
 * they are. */
#include "failure/foreign.h"

enum { BLOCKS = 60000, BIG_BLOCKS = 40, ROUNDS = 3 };

static unsigned char *blocks[BLOCKS];
static unsigned char *big_blocks[BIG_BLOCKS];

static size_t size_of(size_t index) {
  static const size_t sizes[] = {16, 40, 100, 500, 1000, 3000, 9000, 30000, 50 * KIB, 200 * KIB};
  size_t chosen = index % 997 % 10;
  return chosen >= 8 && index % 16 ? 64 : sizes[chosen];
}
static size_t big_size_of(size_t index) { return (1 + index * 7 % 30) * MIB; }

static unsigned char *take(size_t size, size_t index) {
  unsigned char *block = malloc(size);
  CHECK_MSG(block != NULL, "%zu bytes, block %zu", size, index);
  block[0] = block[size - 1] = (unsigned char)index;
  foreign_note(block, size);
  return block;
}

static void give(unsigned char *block, size_t size, size_t index) {
  CHECK(block[0] == (unsigned char)index && block[size - 1] == (unsigned char)index);
  free(block);
}

static void take_all(void) {
  for (size_t i = 0; i < BLOCKS; i++) blocks[i] = take(size_of(i), i);
  for (size_t i = 0; i < BIG_BLOCKS; i++) big_blocks[i] = take(big_size_of(i), i);
}

static void give_all(void) {
  for (size_t i = 0; i < BLOCKS; i++) give(blocks[i], size_of(i), i);
  for (size_t i = 0; i < BIG_BLOCKS; i++) give(big_blocks[i], big_size_of(i), i);
}

int main(void) {
  take_all();
  give_all();
  for (int round = 0; round < ROUNDS; round++) {
    foreign_press();
    size_t filled = foreign_fill_holes();
    CHECK_MSG(round > 0 || filled > 100, "only %zu holes", filled); /* else nothing is tested */
    take_all();
    foreign_check();
    give_all();
  }
  foreign_release();
  take_all();
  give_all();
  return 0;
}
