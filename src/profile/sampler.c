#include "profile/sampler.h"

#include "os/os.h"
#include "profile/control.h"
#include "profile/poisson.h"

/* At the end of a piece the thread looks at the clock. */
enum { PIECE_BYTES = 512 << 10 };

static void begin_piece(struct sampler *sampler, int64_t distance) {
  sampler->countdown = distance < PIECE_BYTES ? distance : PIECE_BYTES;
  sampler->reserve = distance - sampler->countdown;
}

/* A forked child draws others than its parent, and than its siblings.  The kernel may not be asked whose child a process is that is
 * confined; a thread's number is known without it, and that of a child's only thread is another than all of its parent's. */
static void need_stream(struct sampler *sampler) {
  uint32_t drawer = os_is_confined() ? os_thread_id() : os_process_id();
  if (LIKELY(sampler->random && sampler->drawer == drawer)) return;
  sampler->random = os_random() | 1;
  sampler->drawer = drawer;
}

void sampler_draw(struct sampler *sampler) {
  need_stream(sampler);
  sampler->period_bytes = profile_period_bytes();
  begin_piece(sampler, poisson_distance(sampler->period_bytes, &sampler->random));
}

void sampler_stop(struct sampler *sampler) { sampler->countdown = sampler->reserve = 0; }

bool sampler_crosses(struct sampler *sampler, uint64_t bytes) {
  int64_t distance = sampler->countdown + sampler->reserve;
  if (distance <= (int64_t)bytes) return true;
  begin_piece(sampler, distance - (int64_t)bytes);
  return false;
}

/* R has changed: what is left of the distance is as good as a new one. */
void sampler_follow(struct sampler *sampler) {
  if (sampler->period_bytes != profile_period_bytes()) sampler_draw(sampler);
}
