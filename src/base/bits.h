/* bits.h: bit and rounding arithmetic. */
#ifndef HAK_BASE_BITS_H
#define HAK_BASE_BITS_H

#include "base/compiler.h"

/* Index of the lowest / highest set bit; `word` must not be 0. */
INLINE unsigned lowest_bit(uint64_t word) { return (unsigned)__builtin_ctzll(word); }
INLINE unsigned highest_bit(uint64_t word) { return 63u - (unsigned)__builtin_clzll(word); }
/* Constant expressions of the two. */
#define CONSTANT_LOWEST_BIT(word) __builtin_ctzll(word)
#define CONSTANT_HIGHEST_BIT(word) (63 - __builtin_clzll(word))
/* Without the popcnt instruction, which old x86-64 processors lack, compilers call a library
 * function. */
INLINE unsigned count_bits(uint64_t word) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  word -= word >> 1 & UINT64_C(0x5555555555555555);
  word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
  word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (unsigned)(word * UINT64_C(0x0101010101010101) >> 56);
#else
  return (unsigned)__builtin_popcountll(word);
#endif
}

/* True when the word is not 0 and its set bits are adjacent. */
INLINE bool are_neighbours(uint64_t word) {
  uint64_t filled = word | (word - 1); /* fills the zeros below the lowest set bit */
  return word && (filled & (filled + 1)) == 0;
}
/* The number of set bits below the lowest clear one. */
INLINE unsigned count_low_ones(uint64_t word) { return ~word ? lowest_bit(~word) : 64; }

/* A word whose `count` lowest bits are set; count <= 64. */
INLINE uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/* Sets bit `index` modulo 64; whether it was set. */
INLINE bool add_bit(uint64_t *word, uint64_t index) {
#if defined(__x86_64__)
  bool was_set;
  __asm__("btsq %2, %0" : "+r"(*word), "=@ccc"(was_set) : "r"(index));
  return was_set;
#else
  uint64_t bit = UINT64_C(1) << index % 64, before = *word;
  *word |= bit;
  return before & bit;
#endif
}

INLINE bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* The number whose product with `odd` is 1, modulo 2^64. Each step doubles the number of correct
 * bits. */
INLINE uint64_t inverse_of_odd(uint64_t odd) {
  uint64_t inverse = odd; /* correct in 3 bits: the square of an odd number is 1 modulo 8 */
  for (unsigned right = 3; right < 64; right *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

/* number / (odd << shift) if it divides evenly, found and proved by one multiplication: modulo
 * 2^64, multiplying by the inverse of `odd` and rotating undo quotient * odd << shift, and both are
 * one to one. Any other number gives a result above (2^64 - 1) / (odd << shift). */
INLINE uint64_t divide_exactly(uint64_t number, uint64_t inverse, unsigned shift) {
  uint64_t product = number * inverse;
  return product >> shift | product << (64 - shift) % 64;
}

/* Rounding to a multiple of `unit`, a power of two.  round_up may wrap: callers bound first. */
INLINE uintptr_t round_up(uintptr_t value, uintptr_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}
INLINE uintptr_t round_down(uintptr_t value, uintptr_t unit) { return value & ~(unit - 1); }

/* The smallest power of two >= value; value in 1 .. 2^63. */
INLINE size_t power_of_two_at_least(size_t value) {
  return value <= 1 ? 1 : (size_t)1 << (highest_bit(value - 1) + 1);
}

INLINE bool multiply_overflows(size_t a, size_t b, size_t *product) {
  return __builtin_mul_overflow(a, b, product);
}
INLINE bool add_overflows(size_t a, size_t b, size_t *sum) {
  return __builtin_add_overflow(a, b, sum);
}

/* A well-mixed hash of a word (the finaliser of MurmurHash3, public domain arithmetic). */
INLINE uint64_t mix_bits(uint64_t word) {
  word ^= word >> 33;
  word *= UINT64_C(0xff51afd7ed558ccd);
  word ^= word >> 33;
  return word;
}

/* The next number of a small generator, whose state must not be 0 (G. Marsaglia, "Xorshift RNGs",
 * 2003). */
INLINE uint64_t random_next(uint64_t *state) {
  uint64_t word = *state;
  word ^= word << 13;
  word ^= word >> 7;
  word ^= word << 17;
  return *state = word;
}

#endif
