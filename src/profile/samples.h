/* samples.h: the table of live samples, by address.
 *
 *   segment 0 │ 1  2 │ 3  4  5  6 │ …     level L has 2^L segments of SEGMENT_SAMPLES; a hash says which segment of a level,
 *                                         and which BUCKET_SAMPLES places there; levels are made when they are needed
 *
 * Lock-free.  A place belongs to the thread that changes its key from free to busy, and then says the address; to remove a sample is
 * to change its key to free.  Nobody waits, whatever signal, fork or cancellation comes in between: at worst a place stays
 * busy.  Where all places of an address are taken in all levels that may be, the table is full, and its samples are to be
 * halved: each goes or stays by a throw of a coin, and whoever stays counts double from then on, which its key says.  Those that
 * come later throw theirs at once, until there is room again; those that are there when somebody wants their place.
 *
 *   key   | halvings : 7 | address : 57 |       0: free, 1: busy */
#ifndef HAK_PROFILE_SAMPLES_H
#define HAK_PROFILE_SAMPLES_H

#include "profile/profile.h"

enum { SEGMENT_SAMPLES = 4096, BUCKET_SAMPLES = 16, SAMPLE_LEVELS = 8, SAMPLE_HALVINGS_SHIFT = 57 };
_Static_assert((1 << SAMPLE_LEVELS) - 1 == SAMPLE_SEGMENTS, "a place for each segment");

#define SAMPLE_KEY_FREE UINT64_C(0)
#define SAMPLE_KEY_BUSY UINT64_C(1)
#define SAMPLE_ADDRESS_MASK ((UINT64_C(1) << SAMPLE_HALVINGS_SHIFT) - 1)

struct profile_sample {
  uint64_t block_bytes;     /* S: what the block takes */
  uint64_t requested_bytes; /* what was asked for */
  uint64_t period_bytes;    /* R: it was drawn as one in so many bytes */
  uint64_t born_ms;         /* CLOCK_MONOTONIC */
  uint32_t site;            /* profile/sites.h */
  uint32_t thread_id;       /* the kernel's */
  uint32_t class;           /* its size class, or MAP_CLASS_BIG */
  uint32_t unused;
};

struct sample_segment {
  ATOMIC(uint64_t) keys[SEGMENT_SAMPLES];
  struct profile_sample samples[SEGMENT_SAMPLES];
};

/* Throws the coins that a new sample throws while there is no room for all, and says how many those were; SAMPLE_THINNED_OUT when
 * it is not to be kept.  `random` is not 0, and is used up; here and below. */
enum { SAMPLE_THINNED_OUT = -1 };
int samples_throw_coins(uint64_t *random);

/* Keeps a sample of a live block, which has none, and has thrown so many coins; false when there is no memory. */
bool samples_add(uintptr_t address, const struct profile_sample *sample, int coins,
                 uint64_t *random);

/* The block's sample, which is in the table no more, and how often it was halved; false when it has none. */
bool samples_remove(uintptr_t address, struct profile_sample *sample, unsigned *halvings);

/* Changes what was asked for of a live block; its sample before that, and how often it was halved; false when it has none. */
bool samples_resize(uintptr_t address, uint64_t requested_bytes, struct profile_sample *before,
                    unsigned *halvings);

#endif
