/* samples.h: the table of live samples, by address.
 *
 *   segment 0 │ 1  2 │ 3  4  5  6 │ …     level L has 2^L segments of SEGMENT_SAMPLES; a hash says which segment of a level,
 *                                         and which BUCKET_SAMPLES places there; levels are made
 *                                         when they are needed
 *
 * Lock-free.  A place belongs to the thread that changes its key from free to busy, and then writes
 * the address; a sample is removed by changing its key to free. No thread waits, and any signal,
 * fork or cancellation may come in between: at worst a place stays busy. Where all places of an
 * address are taken in all levels, the table is full, and its samples are halved: each goes or
 * stays by a throw of a coin, and a survivor counts double from then on, which its key says. New
 * samples throw their coins at once, until there is room again; those in the table throw theirs
 * when their place is wanted.
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
  uint64_t block_bytes;     /* S: the bytes that the block takes */
  uint64_t requested_bytes; /* as asked for */
  uint64_t period_bytes;    /* R: the mean distance it was drawn with */
  uint64_t born_ns;         /* CLOCK_MONOTONIC */
  uint32_t site;            /* profile/sites.h */
  uint32_t thread_id;       /* the kernel's */
  uint32_t class;           /* its size class, or MAP_CLASS_BIG */
  uint32_t unused;
};

struct sample_segment {
  ATOMIC(uint64_t) keys[SEGMENT_SAMPLES];
  struct profile_sample samples[SEGMENT_SAMPLES];
};

/* Throws a new sample's coins while there is no room for all, and returns their number;
 * SAMPLE_THINNED_OUT when the sample is to be dropped. `random` is not 0, and is advanced; here and
 * below. */
enum { SAMPLE_THINNED_OUT = -1 };
int samples_throw_coins(uint64_t *random);

/* Adds the sample of a live block that has none, for which `coins` were thrown; false when there is
 * no memory. */
bool samples_add(uintptr_t address, const struct profile_sample *sample, int coins,
                 uint64_t *random);

/* Removes the block's sample, and says how often it was halved; false when it has none. */
bool samples_remove(uintptr_t address, struct profile_sample *sample, unsigned *halvings);

/* Changes the requested bytes of a live block's sample; gives the sample before that, and how often
 * it was halved; false when it has none. */
bool samples_resize(uintptr_t address, uint64_t requested_bytes, struct profile_sample *before,
                    unsigned *halvings);

#endif
