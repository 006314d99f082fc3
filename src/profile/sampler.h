/* sampler.h: which of a thread's allocations are samples.
 *
 *   distance ~ exponential, of mean R bytes      counted down by the size of each block;  who crosses 0 is a sample
 *
 * So a block of S bytes is one with probability p = 1 − e^(−S/R), whatever came before.  R may change where it has not been
 * seen what comes: the distance is drawn anew then, which changes nothing in what is to be expected.  The distance is
 * counted in pieces, at whose ends the thread looks at what else there is to know: the lease, R. */
#ifndef HAK_PROFILE_SAMPLER_H
#define HAK_PROFILE_SAMPLER_H

#include "profile/profile.h"

/* Of a heap, its own thread's: it fills the line before the magazines. */
struct sampler {
  int64_t countdown;     /* bytes to the end of the piece; 0 when it is off: then nothing passes */
  uint64_t seen_word;    /* of the control record, at the last look */
  int64_t reserve;       /* bytes of the distance beyond this piece */
  uint64_t period_bytes; /* R of the distance */
  uint64_t random;       /* own stream; 0: not begun yet */
  uint32_t drawer; /* whose stream it is, a process or a thread: a forked child begins another */
  ATOMIC(bool) is_armed;
  ATOMIC(uint8_t) generation; /* of the control record, that it has followed */
};

/* Draws the next distance, of the period that holds now. */
void sampler_draw(struct sampler *sampler);
void sampler_stop(struct sampler *sampler);
/* Draws anew if the period has changed. */
void sampler_follow(struct sampler *sampler);

/* Counts a block while it is on; true when it is a sample: then the next distance is to be drawn. */
bool sampler_crosses(struct sampler *sampler, uint64_t bytes);
/* The same of most blocks, that are none; false, and nothing counted, when the above is to be asked. */
INLINE bool sampler_passes(struct sampler *sampler, uint32_t bytes) {
  if (sampler->countdown <= (int64_t)bytes) return false;
  sampler->countdown -= bytes;
  return true;
}

/* Whether the control record may want something else than what was seen last. */
INLINE bool sampler_is_wanted(const struct sampler *sampler) {
  return UNLIKELY(load_relaxed(&profile_control.word) != sampler->seen_word);
}

#endif
