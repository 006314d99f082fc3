#include "profile/poisson.h"

#include <string.h>

#include "base/bits.h"

enum { MANTISSA_BITS = 52, EXPONENT_BIAS = 1023 };

/* number = m * 2^k with m in [√½, √2); ln m = 2 (t + t³/3 + t⁵/5 + …) with t = (m − 1) / (m + 1),
 * |t| < 0.172. */
double natural_log(double number) {
  static const double ln_2 = 0.69314718055994530942;
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  int exponent = (int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS;
  bits = (bits & low_bits(MANTISSA_BITS)) | (uint64_t)EXPONENT_BIAS << MANTISSA_BITS;
  double mantissa;
  memcpy(&mantissa, &bits, sizeof mantissa);
  if (mantissa > 1.4142135623730951) {
    mantissa /= 2;
    exponent++;
  }
  double t = (mantissa - 1) / (mantissa + 1), square = t * t, sum = 0;
  for (int odd = 17; odd > 0; odd -= 2) sum = sum * square + 1.0 / odd;
  return exponent * ln_2 + 2 * t * sum;
}

/* By the series where x is small; from there e(2x) = e(x) (2 − e(x)). */
double one_minus_exp(double x) {
  enum { TERMS = 12 };
  if (x > 50) return 1;
  unsigned doublings = 0;
  while (x > 0.25) {
    x /= 2;
    doublings++;
  }
  double sum = 0;
  for (int term = TERMS; term > 0; term--) sum = (1 - sum) * x / term;
  for (; doublings; doublings--) sum *= 2 - sum;
  return sum;
}

int64_t poisson_distance(uint64_t period_bytes, uint64_t *random) {
  uint64_t bits = mix_bits(random_next(random)) >> 11; /* 53 of them */
  double unit = ((double)bits + 0.5) * 0x1p-53;        /* in (0, 1) */
  double distance = -natural_log(unit) * (double)period_bytes;
  return distance < (double)POISSON_DISTANCE_MAX ? (int64_t)distance + 1 : POISSON_DISTANCE_MAX;
}

double poisson_probability(uint64_t block_bytes, uint64_t period_bytes) {
  return one_minus_exp((double)block_bytes / (double)period_bytes);
}
