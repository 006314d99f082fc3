/* recording.h: a block that is a sample is written down, with the stack that asked for it; and that it has been freed. */
#ifndef HAK_PROFILE_RECORDING_H
#define HAK_PROFILE_RECORDING_H

#include "profile/sampler.h"

struct recorded_block {
  uintptr_t address; /* what it is found by: of Large and Big blocks their range's */
  void *block;
  uint64_t block_bytes;
  uint64_t requested_bytes;
  unsigned class;
  int coins; /* as samples_throw_coins says */
};

/* Of a live block that is a sample.  False when it could not be kept: it is free of it then.  Any
 * thread, outside of all latches. */
bool recording_add(struct sampler *sampler, const struct recorded_block *recorded);
/* The same of a block that will not be found when it is freed. */
void recording_lose(void);

/* A block is about to be freed; nothing happens if it is no sample. */
void recording_remove(uintptr_t address, const void *block);

/* Of a block that stays as large as it is so much is asked for from now on; nothing happens if it is no sample. */
void recording_resize(uintptr_t address, uint64_t requested_bytes);

#endif
