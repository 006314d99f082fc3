#include "profile/sampler.h"

#include "os/os.h"
#include "profile/control.h"
#include "profile/poisson.h"

/* A forked child draws other samples than its parent and its siblings. A confined process may not
 * ask for its number; a thread's number is known without a system call, and that of a child's only
 * thread differs from all of its parent's. */
static void need_stream(struct sampler *sampler) {
  uint32_t drawer = os_is_confined() ? os_thread_id() : os_process_id();
  if (LIKELY(sampler->random && sampler->drawer == drawer)) return;
  sampler->random = os_random() | 1;
  sampler->drawer = drawer;
}

static void draw(struct sampler *sampler) {
  need_stream(sampler);
  sampler->countdown = (uint64_t)poisson_distance(sampler->period_bytes, &sampler->random);
}

void sampler_draw(struct sampler *sampler) {
  sampler->period_bytes = profile_period_bytes();
  draw(sampler);
}

void sampler_stop(struct sampler *sampler) { sampler->countdown = 0; }

struct sampler_lot sampler_count(struct sampler *sampler, uint64_t block_bytes, unsigned most) {
  uint64_t bytes = most * block_bytes, distance = sampler->countdown;
  /* The whole lot, wherever its sample is. */
  sampler->unlooked -= bytes < sampler->unlooked ? bytes : sampler->unlooked;
  if (bytes < distance) {
    sampler->countdown -= bytes;
    return (struct sampler_lot){most, false};
  }
  draw(sampler);
  return (struct sampler_lot){(unsigned)((distance + block_bytes - 1) / block_bytes), true};
}

/* When R has changed, a new distance may replace the rest of the old one: an exponential
 * distribution has no memory. */
bool sampler_follow(struct sampler *sampler) {
  if (sampler->period_bytes == profile_period_bytes()) return false;
  sampler_draw(sampler);
  return true;
}
