/* src/profile/sampler: forked children draw other samples than their parent, and than each other,
 * confined or not. */
#include "profile/sampler.h"

#include "child.h"
#include "os/os.h"

enum { CHILDREN = 2, DRAWS = 8 };

struct draws {
  int64_t distances[DRAWS];
};

static struct sampler sampler;

static struct draws draw(void) {
  struct draws draws;
  for (unsigned at = 0; at < DRAWS; at++) {
    sampler_draw(&sampler);
    draws.distances[at] = (int64_t)sampler.countdown;
  }
  return draws;
}

static struct draws draw_in_child(void) {
  struct draws draws;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    draws = draw();
    _exit(write(ends[1], &draws, sizeof draws) != sizeof draws);
  }
  REQUIRE(read(ends[0], &draws, sizeof draws) == sizeof draws);
  require_child_succeeded(child);
  close(ends[0]);
  close(ends[1]);
  return draws;
}

static bool are_alike(const struct draws *one, const struct draws *other) {
  return memcmp(one, other, sizeof *one) == 0;
}

CHILD_TESTS(draw_apart, bool, is_confined, false, true) {
  struct draws all[CHILDREN + 1];
  (void)draw();
  if (is_confined) os_confine();
  for (unsigned child = 0; child < CHILDREN; child++) all[child] = draw_in_child();
  all[CHILDREN] = draw();
  for (unsigned one = 0; one <= CHILDREN; one++)
    for (unsigned other = 0; other < one; other++) REQUIRE(!are_alike(&all[one], &all[other]));
}
