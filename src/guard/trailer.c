#include "guard/trailer.h"

#include <string.h>

#include "base/bits.h"
#include "os/os.h"

enum { SLACK_SHIFT = 48, MAKER_SHIFT = 46, MAKER_MASK = 3, SLACK_BYTE = 0xD7 };

static uint64_t key; /* constant after trailer_init */

void trailer_init(void) { key = os_random() | 1; }

/* The lowest byte, the first in memory, is not 0: most overflows are a string's end. */
static uint64_t word_for(uintptr_t block, uint64_t slack_and_maker) {
  uint64_t check =
      mix_bits((block ^ key) * (slack_and_maker * 2 + 1) + key) & low_bits(MAKER_SHIFT);
  return slack_and_maker << MAKER_SHIFT | check | 1;
}

/* Others may read it meanwhile (HAKMEM_HARDEN=2): never torn. */
static ATOMIC(uint64_t) *trailer_of(uintptr_t block, size_t capacity_bytes) {
  return (ATOMIC(uint64_t) *)(block + capacity_bytes - TRAILER_BYTES);
}

void trailer_write(uintptr_t block, size_t capacity_bytes, size_t requested_bytes,
                   enum maker maker) {
  size_t slack_bytes = capacity_bytes - TRAILER_BYTES - requested_bytes;
  ASSERT(slack_bytes <= SLACK_MAX_BYTES);
  memset((char *)block + requested_bytes, SLACK_BYTE, slack_bytes);
  uint64_t slack_and_maker = (uint64_t)slack_bytes << (SLACK_SHIFT - MAKER_SHIFT) | maker;
  store_relaxed(trailer_of(block, capacity_bytes), word_for(block, slack_and_maker));
}

bool trailer_read(uintptr_t block, size_t capacity_bytes, size_t *requested_bytes) {
  uint64_t word = load_relaxed(trailer_of(block, capacity_bytes));
  size_t slack_bytes = word >> SLACK_SHIFT;
  if (word != word_for(block, word >> MAKER_SHIFT) || slack_bytes > capacity_bytes - TRAILER_BYTES)
    return false;
  *requested_bytes = capacity_bytes - TRAILER_BYTES - slack_bytes;
  return true;
}

enum maker trailer_maker(uintptr_t block, size_t capacity_bytes) {
  return load_relaxed(trailer_of(block, capacity_bytes)) >> MAKER_SHIFT & MAKER_MASK;
}

/* Whole words, at any address: most blocks are as they should be. */
static bool is_slack_word(const unsigned char *bytes) {
  static const uint64_t wanted = UINT64_C(0x0101010101010101) * SLACK_BYTE;
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word == wanted;
}

size_t trailer_find_overflow(uintptr_t block, size_t capacity_bytes, size_t requested_bytes) {
  const unsigned char *bytes = (const unsigned char *)block;
  size_t at = requested_bytes, end = capacity_bytes - TRAILER_BYTES;
  while (at + sizeof(uint64_t) <= end && is_slack_word(bytes + at)) at += sizeof(uint64_t);
  while (at < end && bytes[at] == SLACK_BYTE) at++;
  return at == end ? 0 : at;
}

enum { WORDS_AT_ONCE = 8 };

static bool are_zero(const uint64_t *words) {
  uint64_t any = 0;
  for (unsigned index = 0; index < WORDS_AT_ONCE; index++) any |= words[index];
  return any == 0;
}

size_t find_nonzero(uintptr_t begin, size_t bytes) {
  const uint64_t *words = (const uint64_t *)begin; /* NOLINT: blocks are made of addresses */
  size_t count = bytes / sizeof *words, index = 0;
  while (index + WORDS_AT_ONCE <= count && are_zero(&words[index])) index += WORDS_AT_ONCE;
  while (index < count && !words[index]) index++;
  return index == count ? bytes : index * sizeof *words + lowest_bit(words[index]) / 8;
}
