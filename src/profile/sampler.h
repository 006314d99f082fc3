/* sampler.h: which of a thread's allocations are samples.
 *
 *   distance ~ exponential, of mean R bytes      counted down by the size of each block;  the
 *                                                one that crosses 0 is a sample
 *
 * So a block of S bytes is one with probability p = 1 − e^(−S/R), independent of the past.  R may
 * change while the next sample is not known yet: the distance is drawn anew then, which keeps all
 * expectations.
 *
 * Small blocks are counted in lots, of one class each, before they are handed out: a magazine says
 * how many malloc may pop without asking, and whether the next one is a sample then.  Law: a
 * thread's actions before a sample do not depend on the sample's place in a lot, or on whether
 * there is one. So a lot that is no longer wanted is dropped as it is, and the thread checks the
 * lease and R once `unlooked` bytes are used up, before it draws the next lot. */
#ifndef HAK_PROFILE_SAMPLER_H
#define HAK_PROFILE_SAMPLER_H

#include "profile/profile.h"

/* One for each heap, used by its thread; it fills the line before the magazines. */
struct sampler {
  uint64_t countdown;         /* bytes to the next sample; 0 when it is off */
  uint64_t seen_word;         /* of the control record, at the last look */
  uint64_t unlooked;          /* bytes to the next look; 0: it is due */
  uint64_t period_bytes;      /* R of the distance, and of all samples that are due */
  uint64_t random;            /* own stream; 0: not begun yet */
  uint32_t drawer;            /* its process or thread: a forked child begins another stream */
  ATOMIC(uint8_t) generation; /* of the control record, as followed last */
};

/* Draws the next distance, with the current period. */
void sampler_draw(struct sampler *sampler);
void sampler_stop(struct sampler *sampler);
/* Draws anew if the period has changed; true when it has: lots are void then. */
bool sampler_follow(struct sampler *sampler);

/* Counts a lot of blocks while a profile is on: `most`, or fewer if one of them is a sample, which
 * is then the last. */
struct sampler_lot {
  unsigned blocks;
  bool has_sample;
};
struct sampler_lot sampler_count(struct sampler *sampler, uint64_t block_bytes, unsigned most);

/* Whether the control record has changed since the last look. */
INLINE bool sampler_is_wanted(const struct sampler *sampler) {
  return UNLIKELY(load_relaxed(&profile_control.word) != sampler->seen_word);
}

#endif
