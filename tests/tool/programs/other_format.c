/* A library that claims to be hakmem 9.9.9, and describes itself in format FORMAT (a macro). */
#include <stdint.h>

const struct {
  char magic[16];
  uint32_t format, block_bytes, entry_bytes, entry_count;
  uint64_t entries;
  uint32_t root_bytes, root_count;
  uint64_t roots, texts, text_bytes;
  char version[16];
} hak_stats_block = {
    .magic = "hakmem-stats", .format = FORMAT, .block_bytes = 88, .version = "9.9.9"};
