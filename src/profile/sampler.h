/* sampler.h: which of a thread's allocations are samples.
 *
 *   distance ~ exponential, of mean R bytes      counted down by the size of each block;  who crosses 0 is a sample
 *
 * So a block of S bytes is one with probability p = 1 − e^(−S/R), whatever came before.  R may change where it has not been
 * seen what comes: the distance is drawn anew then, which changes nothing in what is to be expected.
 *
 * Small blocks are counted in lots, of one class each, before they are handed out: a magazine says how many malloc may pop
 * without asking, and whether the next one is a sample then.  Law: nothing that a thread does before it comes to a sample
 * depends on where in a lot that is, or whether there is one.  So a lot that is no longer wanted is dropped as it is, and the
 * thread looks at what else there is to know (the lease, R) after so many bytes, before it draws the next lot. */
#ifndef HAK_PROFILE_SAMPLER_H
#define HAK_PROFILE_SAMPLER_H

#include "profile/profile.h"

/* Of a heap, its own thread's: it fills the line before the magazines. */
struct sampler {
  uint64_t countdown;    /* bytes to the next sample's; 0 when it is off */
  uint64_t seen_word;    /* of the control record, at the last look */
  uint64_t unlooked;     /* bytes to the next look; 0: it is due */
  uint64_t period_bytes; /* R of the distance, and of all samples that are due */
  uint64_t random;       /* own stream; 0: not begun yet */
  uint32_t drawer; /* whose stream it is, a process or a thread: a forked child begins another */
  ATOMIC(bool) is_armed;
  ATOMIC(uint8_t) generation; /* of the control record, that it has followed */
};

/* Draws the next distance, of the period that holds now. */
void sampler_draw(struct sampler *sampler);
void sampler_stop(struct sampler *sampler);
/* Draws anew if the period has changed; true when it has: what lots have is void then. */
bool sampler_follow(struct sampler *sampler);

/* Counts a lot of blocks while it is on: `most`, or fewer if there is a sample among them, which is the last one then. */
struct sampler_lot {
  unsigned blocks;
  bool has_sample;
};
struct sampler_lot sampler_count(struct sampler *sampler, uint64_t block_bytes, unsigned most);

/* Whether the control record may want something else than what was seen last. */
INLINE bool sampler_is_wanted(const struct sampler *sampler) {
  return UNLIKELY(load_relaxed(&profile_control.word) != sampler->seen_word);
}

#endif
