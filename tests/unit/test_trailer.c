/* src/hardened/trailer: the canary of hardened blocks. */
#include "hardened/trailer.h"

#include <string.h>

#include "config/options.h"
#include "unit.h"

enum { CAPACITY_BYTES = 128 };

static _Alignas(64) unsigned char memory[CAPACITY_BYTES];
static const uintptr_t block = (uintptr_t)memory;

static size_t requested(void) {
  size_t bytes;
  return trailer_read(block, CAPACITY_BYTES, &bytes) ? bytes : SIZE_MAX;
}

TEST(knows_what_was_asked_for) {
  for (size_t bytes = 0; bytes <= CAPACITY_BYTES - TRAILER_BYTES; bytes++) {
    trailer_write(block, CAPACITY_BYTES, bytes, MADE_BY_MALLOC);
    assert_int_equal(requested(), bytes);
    assert_int_equal(trailer_find_overflow(block, CAPACITY_BYTES, bytes), 0);
  }
}

TEST(every_byte_behind_counts) {
  options.harden = 2;
  enum { REQUESTED = 53 };
  for (size_t at = REQUESTED; at < CAPACITY_BYTES; at++) {
    trailer_write(block, CAPACITY_BYTES, REQUESTED, MADE_BY_MALLOC);
    memory[at] ^= 1;
    if (at < CAPACITY_BYTES - TRAILER_BYTES)
      assert_int_equal(trailer_find_overflow(block, CAPACITY_BYTES, REQUESTED), at);
    else
      assert_int_equal(requested(), SIZE_MAX);
  }
}

/* Of a long slack the first bytes, and the trailer behind the rest. */
TEST(the_first_bytes_of_a_long_slack_count) {
  enum { REQUESTED = 21, LOOKED_AT_END = REQUESTED + SLACK_CHECKED_BYTES };
  options.harden = 1;
  for (size_t at = REQUESTED; at < CAPACITY_BYTES - TRAILER_BYTES; at++) {
    memset(memory, 0, sizeof memory);
    trailer_write_first(block, CAPACITY_BYTES, REQUESTED, MADE_BY_MALLOC);
    assert_int_equal(trailer_find_overflow(block, CAPACITY_BYTES, REQUESTED), 0);
    memory[at] ^= 1;
    assert_int_equal(trailer_find_overflow(block, CAPACITY_BYTES, REQUESTED),
                     at < LOOKED_AT_END ? at : 0);
  }
}

/* A few in a million did, of 64 MiB of blocks: `hakmem leaks` took lost ones for reachable. */
TEST(none_looks_like_a_pointer) {
  for (uintptr_t any = 0; any < 1000; any++)
    for (enum maker maker = MADE_BY_MALLOC; maker <= MADE_BY_NEW_ARRAY; maker++)
      for (size_t slack_bytes = 0; slack_bytes <= SLACK_MAX_BYTES; slack_bytes += 257)
        assert_true(trailer_word_for(block + 64 * any, slack_bytes, maker) >> 63);
}

/* What malloc writes is what realloc writes, whatever was asked for. */
TEST(written_first_is_the_same) {
  unsigned char written[CAPACITY_BYTES];
  for (options.harden = 1; options.harden <= 2; options.harden++)
    for (size_t bytes = 1; bytes <= CAPACITY_BYTES - TRAILER_BYTES; bytes++) {
      memset(memory, 0, sizeof memory);
      trailer_write(block, CAPACITY_BYTES, bytes, MADE_BY_MALLOC);
      memcpy(written, memory, sizeof memory);
      memset(memory, 0, sizeof memory);
      trailer_write_first(block, CAPACITY_BYTES, bytes, MADE_BY_MALLOC);
      assert_memory_equal(memory, written, sizeof memory);
      assert_int_equal(trailer_find_overflow(block, CAPACITY_BYTES, bytes), 0);
    }
}

/* What most overflows write is never what was there. */
TEST(common_bytes_are_seen) {
  static const unsigned char common[] = {0, 1, 2, ' ', '0', 'A', 'a', 0x7f, 0xff};
  for (size_t at = 16; at <= CAPACITY_BYTES; at += 16) {
    trailer_write((uintptr_t)memory, at, at - TRAILER_BYTES, MADE_BY_MALLOC);
    for (size_t index = 0; index < sizeof common; index++)
      assert_int_not_equal(memory[at - TRAILER_BYTES], common[index]);
  }
}

TEST(a_single_zero_is_seen) {
  for (size_t bytes = 1; bytes <= CAPACITY_BYTES - TRAILER_BYTES; bytes++) {
    trailer_write(block, CAPACITY_BYTES, bytes, MADE_BY_MALLOC);
    memory[bytes] = 0;
    bool is_seen =
        requested() == SIZE_MAX || trailer_find_overflow(block, CAPACITY_BYTES, bytes) == bytes;
    assert_true(is_seen);
  }
}

TEST(knows_what_made_the_block) {
  for (enum maker maker = MADE_BY_MALLOC; maker <= MADE_BY_NEW_ARRAY; maker++) {
    trailer_write(block, CAPACITY_BYTES, 50, maker);
    assert_int_equal(trailer_maker(block, CAPACITY_BYTES), maker);
    assert_int_equal(requested(), 50);
    memory[CAPACITY_BYTES - 3] ^= 0x40; /* the maker's lower bit */
    assert_int_equal(requested(), SIZE_MAX);
  }
}

TEST(another_blocks_trailer_does_not_do) {
  static _Alignas(64) unsigned char other[CAPACITY_BYTES];
  trailer_write((uintptr_t)other, CAPACITY_BYTES, 50, MADE_BY_MALLOC);
  memcpy(memory, other, CAPACITY_BYTES);
  assert_int_equal(requested(), SIZE_MAX);
}

TEST(find_nonzero) {
  memset(memory, 0, sizeof memory);
  assert_int_equal(find_nonzero(block, CAPACITY_BYTES), CAPACITY_BYTES);
  assert_int_equal(find_nonzero(block, 16), 16);
  for (size_t at = 0; at < CAPACITY_BYTES; at++) {
    memory[at] = 0x80;
    assert_int_equal(find_nonzero(block, CAPACITY_BYTES), at);
    memory[at] = 0;
  }
}

BEFORE(all) { trailer_init(); }
