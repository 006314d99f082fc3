#include "hardened/trailer.h"

#include "base/bits.h"
#include "os/os.h"

struct trailer_key trailer_key;

void trailer_init(void) {
  trailer_key.mask = os_random();
  trailer_key.factor = os_random() | 1;
}

/* Whole words, at any address: most blocks are intact. */
uintptr_t trailer_find_written(uintptr_t begin, uintptr_t end) {
  uintptr_t at = begin;
  while (end - at >= sizeof(uint64_t) && trailer_load(at) == SLACK_WORD) at += sizeof(uint64_t);
  while (at < end && *(const unsigned char *)at == SLACK_BYTE) at++;
  return at;
}

size_t find_nonzero(uintptr_t begin, size_t bytes) {
  const uint64_t *words = (const uint64_t *)begin; /* NOLINT: blocks are made of addresses */
  size_t count = bytes / sizeof *words, index = 0;
  while (index < count && !words[index]) index++;
  return index == count ? bytes : index * sizeof *words + lowest_bit(words[index]) / 8;
}
