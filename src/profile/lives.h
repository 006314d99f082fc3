/* lives.h: the last samples that were freed, each with its whole life, for a tool that reads them
 * while the program runs.
 *
 *   a thread   takes a number, which leads to a place; writes the life; the place's turn is the
 *              number + 1 then
 *   the tool   reads places up to `taken`, and `taken` again: a life whose place came round
 *              meanwhile, or never became whole, is missing
 *
 * Law: a place belongs to the thread that has made its turn LIFE_BUSY. One that is interrupted
 * there, for good even, keeps a place: lives whose numbers lead to it are missing. No thread
 * waits. */
#ifndef HAK_PROFILE_LIVES_H
#define HAK_PROFILE_LIVES_H

#include "profile/samples.h"

enum { LIVES = 4096 };
#define LIFE_BUSY UINT64_MAX

struct profile_life {
  ATOMIC(uint64_t) turn;
  struct profile_sample sample;
  uint64_t lived_ns;
  uint32_t thread_id; /* of the free */
  uint32_t halvings;
};

struct life_log {
  ATOMIC(uint64_t) taken; /* numbers, so far */
  struct profile_life lives[LIVES];
};

/* Notes a sample that was freed, if the control record asks for that. */
void lives_note(const struct profile_sample *sample, unsigned halvings, uint64_t lived_ns);

#endif
