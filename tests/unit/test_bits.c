/* src/base/bits: bit and rounding arithmetic. */
#include "base/bits.h"

#include "unit.h"

TEST(single_bits) {
  for (unsigned bit = 0; bit < 64; bit++) {
    uint64_t word = UINT64_C(1) << bit;
    assert_int_equal(lowest_bit(word), bit);
    assert_int_equal(highest_bit(word), bit);
    assert_int_equal(lowest_bit(word | UINT64_C(1) << 63), bit);
    assert_int_equal(highest_bit(word | 1), bit);
    assert_int_equal(count_bits(word - 1), bit);
    assert_true(low_bits(bit) == word - 1);
  }
  assert_true(low_bits(64) == UINT64_MAX);
}

TEST(powers_of_two) {
  assert_false(is_power_of_two(0));
  assert_int_equal(power_of_two_at_least(0), 1);
  for (unsigned bit = 0; bit < 63; bit++) {
    size_t power = (size_t)1 << bit;
    assert_true(is_power_of_two(power));
    assert_int_equal(power_of_two_at_least(power), power);
    if (bit > 1) assert_int_equal(power_of_two_at_least(power - 1), power);
    if (bit > 1) assert_false(is_power_of_two(power - 1));
    assert_int_equal(power_of_two_at_least(power + 1), power * 2);
  }
}

TEST(rounding) {
  for (uintptr_t value = 0; value < 300; value++) {
    uintptr_t up = round_up(value, 64), down = round_down(value, 64);
    assert_true(up % 64 == 0 && up >= value && up - value < 64);
    assert_true(down % 64 == 0 && down <= value && value - down < 64);
  }
}

TEST(neighbours) {
  assert_false(are_neighbours(0) || are_neighbours(5) || are_neighbours(UINT64_C(1) << 63 | 1));
  for (unsigned count = 1; count <= 64; count++)
    for (unsigned low = 0; low + count <= 64; low++) {
      assert_true(are_neighbours(low_bits(count) << low));
      assert_int_equal(count_low_ones(low_bits(count) << low >> low), count);
    }
  assert_int_equal(count_low_ones(0xb), 2);
}

TEST(exact_division) {
  for (uint64_t odd = 1; odd < 1000; odd += 2) {
    uint64_t inverse = inverse_of_odd(odd);
    assert_true(odd * inverse == 1);
    for (unsigned shift = 0; shift < 8; shift++) {
      uint64_t divisor = odd << shift;
      assert_true(divide_exactly(divisor * 77, inverse, shift) == 77);
      if (divisor > 1)
        assert_true(divide_exactly(divisor * 77 + 1, inverse, shift) > UINT64_MAX / divisor);
    }
  }
}

TEST(overflow) {
  size_t result;
  assert_false(multiply_overflows(0, SIZE_MAX, &result));
  assert_int_equal(result, 0);
  assert_false(multiply_overflows((size_t)1 << 32, ((size_t)1 << 32) - 1, &result));
  assert_true(multiply_overflows((size_t)1 << 32, (size_t)1 << 32, &result));
  assert_false(add_overflows(SIZE_MAX, 0, &result));
  assert_true(add_overflows(SIZE_MAX, 1, &result));
}

/* Neighbouring numbers must spread over a few shards. */
TEST(mixing_spreads) {
  unsigned hits[64] = {0};
  for (uint64_t word = 0; word < 6400; word++) hits[mix_bits(word << 4) % 64]++;
  for (unsigned shard = 0; shard < 64; shard++)
    assert_true(hits[shard] >= 50 && hits[shard] <= 200);
}

/* The first numbers of the paper's triple (13, 7, 17) from 1, and as many ones as zeros. */
TEST(random_numbers) {
  uint64_t random = 1;
  unsigned ones = 0;
  assert_true(random_next(&random) == UINT64_C(0x40822041) && random == UINT64_C(0x40822041));
  assert_true(random_next(&random) == UINT64_C(0x100041060c011441));
  for (unsigned draw = 0; draw < 1000; draw++) ones += count_bits(random_next(&random));
  assert_true(ones >= 31000 && ones <= 33000);
}
