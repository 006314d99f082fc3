/* stamp.h: content that tells whose it is.
 *
 * The stamp of (seed, n bytes) is a prefix of the stamp of (seed, m > n bytes), so what a realloc
 * kept can be checked with the smaller of the two sizes.  Every 8-byte word depends on the seed and
 * on its own offset: content shifted, mixed or taken from another block does not pass. */
#ifndef TESTS_API_STAMP_H
#define TESTS_API_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t stamp_word(uint64_t seed, size_t index) {
  uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15ull ^ (index + 1) * 0xbf58476d1ce4e5b9ull;
  return word ^ word >> 29;
}

static inline void stamp_write(void *block, size_t bytes, uint64_t seed) {
  unsigned char *out = (unsigned char *)block;
  size_t words = bytes / sizeof(uint64_t);
  for (size_t i = 0; i < words; i++) {
    uint64_t word = stamp_word(seed, i);
    __builtin_memcpy(out + i * sizeof word, &word, sizeof word);
  }
  uint64_t last = stamp_word(seed, words);
  __builtin_memcpy(out + words * sizeof last, &last, bytes % sizeof last);
}

static inline bool stamp_holds(const void *block, size_t bytes, uint64_t seed) {
  const unsigned char *in = (const unsigned char *)block;
  size_t words = bytes / sizeof(uint64_t);
  for (size_t i = 0; i < words; i++) {
    uint64_t word;
    __builtin_memcpy(&word, in + i * sizeof word, sizeof word);
    if (word != stamp_word(seed, i)) return false;
  }
  uint64_t last = stamp_word(seed, words);
  return memcmp(in + words * sizeof last, &last, bytes % sizeof last) == 0;
}

static inline bool all_bytes_are(const void *block, size_t bytes, unsigned char value) {
  const unsigned char *in = (const unsigned char *)block;
  return bytes == 0 || (in[0] == value && memcmp(in, in + 1, bytes - 1) == 0);
}

#endif
