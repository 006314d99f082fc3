/* src/profile/poisson.c */
#include "profile/poisson.h"

#include "profiles.h"

static void require_near(double found, double expected) {
  double error = found / expected - 1;
  if (error > 1e-12 || error < -1e-12) fail_msg("%.17g, not %.17g", found, expected);
}

TEST(logarithm) {
  require_near(natural_log(2), 0.69314718055994530942);
  require_near(natural_log(10), 2.30258509299404568402);
  require_near(natural_log(0x1p-54), -37.429947750237046709);
  require_near(natural_log(0.999), -0.0010005003335835344);
  require_near(natural_log(1.41421356237), 0.34657359027778417);
  require_near(natural_log(1.41421356238), 0.34657359028485524);
  uint64_t random = 1;
  for (unsigned round = 0; round < 10000; round++) { /* ln ab = ln a + ln b */
    double a = (double)(random_next(&random) >> 40) + 2,
           b = (double)(random_next(&random) >> 50) + 2;
    require_near(natural_log(a * b), natural_log(a) + natural_log(b));
  }
}

TEST(exponential) {
  require_near(one_minus_exp(0.69314718055994530942), 0.5);
  require_near(one_minus_exp(1e-9), 9.999999995e-10);
  require_near(one_minus_exp(1), 0.63212055882855767840);
  require_near(one_minus_exp(20), 0.9999999979388464);
  assert_true(one_minus_exp(1e6) == 1 && one_minus_exp(0) == 0);
  for (double x = 1e-6; x < 20; x *= 1.07) { /* e(x + y) = e(x) + e(y) − e(x) e(y) */
    double one = one_minus_exp(x), other = one_minus_exp(x * 1.3);
    require_near(one_minus_exp(x * 2.3), one + other - one * other);
  }
}

/* Block by block, whatever their sizes: as often as the probability says. */
TEST(distances) {
  static const uint64_t sizes[] = {8, 64, 1000, 4096, 100000};
  enum { PERIOD = 4096, ROUNDS = 400000 };
  for (unsigned at = 0; at < 5; at++) {
    uint64_t random = 7 + at;
    unsigned samples = 0;
    int64_t left = poisson_distance(PERIOD, &random);
    for (unsigned round = 0; round < ROUNDS; round++) {
      left -= (int64_t)sizes[at];
      if (left > 0) continue;
      samples++;
      left = poisson_distance(PERIOD, &random);
    }
    double p = poisson_probability(sizes[at], PERIOD), expected = p * (double)ROUNDS;
    double square = ((double)samples - expected) * ((double)samples - expected);
    assert_true(square <= 16 * expected * (1 - p) + 1); /* four deviations */
  }
}

TEST(largest_distance) {
  uint64_t random = 3;
  for (unsigned round = 0; round < 1000; round++) {
    int64_t distance = poisson_distance(UINT64_MAX, &random);
    assert_true(distance > 0 && distance <= POISSON_DISTANCE_MAX);
    assert_true(poisson_distance(1, &random) >= 1);
  }
}
