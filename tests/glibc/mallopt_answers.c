/* mallopt: 1 for whatever glibc says 1 to, unknown parameters too, as programs give up at 0; 0 for
 * what is out of range there.  Nothing that it was told does harm. */
#include "api/check.h"
#include "api/sizes.h"

int __libc_mallopt(int parameter, int value); /* exported by glibc */

static void use_every_tier(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    char *block = calloc(1, tier_sizes[i]);
    CHECK(block != NULL && block[tier_sizes[i] - 1] == 0);
    memset(block, 1, tier_sizes[i]);
    free(block);
  }
}

int main(void) {
  static const struct {
    int parameter, value, answer;
  } calls[] = {
      {M_MXFAST, 0, 1},
      {M_MXFAST, 160, 1},
      {M_MXFAST, 161, 0},
      {M_MXFAST, -1, 0},
      {M_TRIM_THRESHOLD, 0, 1},
      {M_TRIM_THRESHOLD, 128 * 1024, 1},
      {M_TOP_PAD, 0, 1},
      {M_TOP_PAD, 64 * 1024, 1},
      {M_MMAP_THRESHOLD, 0, 1},
      {M_MMAP_THRESHOLD, 64 * 1024, 1},
      {M_MMAP_THRESHOLD, 1 << 30, 1},
      {M_MMAP_MAX, 0, 1},
      {M_MMAP_MAX, 64 * 1024, 1},
      {M_CHECK_ACTION, 0, 1},
      {M_CHECK_ACTION, 3, 1},
      {M_PERTURB, 0xa5, 1},
      {M_ARENA_TEST, 1, 1},
      {M_ARENA_TEST, 0, 1},
      {M_ARENA_MAX, 1, 1},
      {M_ARENA_MAX, 8, 1},
      {M_ARENA_MAX, -1, 1},
      {12345, 1, 1},
      {-12345, 1, 1},
      {M_TRIM_THRESHOLD, -1, 1},
  };
  for (size_t i = 0; i < COUNT_OF(calls); i++) {
    int answer = mallopt(calls[i].parameter, calls[i].value);
    CHECK_MSG(answer == calls[i].answer, "mallopt(%d, %d): %d", calls[i].parameter, calls[i].value,
              answer);
    use_every_tier();
  }
  CHECK(__libc_mallopt(M_ARENA_MAX, 2) == 1);

  /* What M_CHECK_ACTION says changes nothing since glibc 2.26: it would switch checks off. */
  free(malloc(100));
  return 0;
}
