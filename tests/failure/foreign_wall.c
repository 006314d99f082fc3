/* Somebody reserves argv[1] TiB right behind what the allocator has, again and again (argv[2]
 * times).  It grows on behind each wall: small blocks, and Large and Big ones of some GiB that
 * nobody touches. */
#include "failure/foreign.h"

enum { SMALL_BLOCKS = 40000, BIG_BLOCKS = 24 };

static unsigned char *take(size_t size) {
  unsigned char *block = malloc(size);
  CHECK_MSG(block != NULL, "%zu bytes", size);
  block[0] = block[size - 1] = 1;
  foreign_note(block, size);
  return block;
}

/* The window lies at random.  Where it left no room for a wall, a new process draws again. */
static void draw_again(char **argv) {
  enum { DRAWS_MAX = 20 };
  const char *drawn = getenv("WALL_DRAWS");
  unsigned long draws = drawn ? strtoul(drawn, NULL, 10) + 1 : 1;
  char number[32];
  CHECK_MSG(draws < DRAWS_MAX, "no place for a wall, %lu times", draws);
  snprintf(number, sizeof number, "%lu", draws);
  CHECK(setenv("WALL_DRAWS", number, 1) == 0);
  execv("/proc/self/exe", argv);
  CHECK(!"exec");
}

/* The first place behind the highest block where nothing is, up to the next mapping or argv[1]
 * TiB. */
static void build_wall(size_t bytes, char **argv) {
  uintptr_t at = foreign_highest - foreign_highest % FOREIGN_CHUNK_BYTES;
  for (int attempt = 0; attempt < 100000; attempt++, at += FOREIGN_CHUNK_BYTES)
    if (foreign_map(at, bytes, PROT_NONE) != NULL) return;
  draw_again(argv);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  size_t wall_bytes = strtoul(argv[1], NULL, 10) * TIB;
  unsigned char *big_blocks[BIG_BLOCKS];
  for (size_t i = 0; i < 1000; i++) take(30000);
  free(take(5 * MIB));
  for (unsigned long walls = strtoul(argv[2], NULL, 10); walls > 0; walls--) {
    build_wall(wall_bytes, argv);
    for (size_t i = 0; i < SMALL_BLOCKS; i++) take(16 + i % 2000);
    for (size_t i = 0; i < 400; i++) take(40 * KIB + i * KIB);
    for (size_t i = 0; i < BIG_BLOCKS; i++) big_blocks[i] = take(256 * MIB + i * MIB);
    for (size_t i = 0; i < BIG_BLOCKS; i++) {
      big_blocks[i] = realloc(big_blocks[i], 300 * MIB);
      CHECK(big_blocks[i] != NULL && big_blocks[i][0] == 1);
      free(big_blocks[i]);
    }
  }
  return 0;
}
