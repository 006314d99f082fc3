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

/* A forked child draws others than its parent.  A process that is confined may not be asked who it is. */
static void need_stream(struct sampler *sampler) {
  uint32_t process_id = os_is_confined() ? sampler->process_id : os_process_id();
  if (LIKELY(sampler->random && sampler->process_id == process_id)) return;
  sampler->random = os_random() | 1;
  sampler->process_id = process_id;
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
