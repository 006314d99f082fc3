#include "guard/trailer.h"

#include <string.h>

#include "base/bits.h"
#include "os/os.h"

struct trailer_key trailer_key;

void trailer_init(void) {
  trailer_key.mask = os_random();
  trailer_key.factor = os_random() | 1;
}

/* Most are shorter than a call of memset is worth. */
void trailer_fill(uintptr_t begin, uintptr_t end) {
  enum { SHORT_BYTES = 64 };
  static const uint64_t word = SLACK_WORD;
  uintptr_t at = begin;
  if (end - begin > SHORT_BYTES) {
    memset((void *)begin, SLACK_BYTE, end - begin);
    return;
  }
  for (; end - at >= sizeof word; at += sizeof word) memcpy((void *)at, &word, sizeof word);
  for (; at < end; at++) *(unsigned char *)at = SLACK_BYTE;
}

/* Whole words, at any address: most blocks are as they should be. */
static bool is_slack_word(const unsigned char *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word == SLACK_WORD;
}

uintptr_t trailer_find_written(uintptr_t begin, uintptr_t end) {
  uintptr_t at = begin;
  while (at + sizeof(uint64_t) <= end && is_slack_word((const unsigned char *)at))
    at += sizeof(uint64_t);
  while (at < end && *(const unsigned char *)at == SLACK_BYTE) at++;
  return at;
}

size_t find_nonzero(uintptr_t begin, size_t bytes) {
  const uint64_t *words = (const uint64_t *)begin; /* NOLINT: blocks are made of addresses */
  size_t count = bytes / sizeof *words, index = 0;
  while (index < count && !words[index]) index++;
  return index == count ? bytes : index * sizeof *words + lowest_bit(words[index]) / 8;
}
