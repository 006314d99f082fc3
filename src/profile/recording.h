/* recording.h: records sampled blocks with the stacks that asked for them, and their frees. */
#ifndef HAK_PROFILE_RECORDING_H
#define HAK_PROFILE_RECORDING_H

#include "profile/sampler.h"

struct recorded_block {
  uintptr_t address; /* the key; of Large and Big blocks their range's */
  void *block;
  uint64_t block_bytes;
  uint64_t requested_bytes;
  unsigned class;
  int coins; /* as samples_throw_coins says */
};

/* Records a live block as a sample. False when the sample could not be kept: the block has none
 * then. Any thread, outside of all latches. */
bool recording_add(struct sampler *sampler, const struct recorded_block *recorded);
/* Counts a sample as lost: its block would not be found when it is freed. */
void recording_lose(void);

/* Removes the sample of a block that is about to be freed, if it has one. */
void recording_remove(uintptr_t address, const void *block);

/* Notes the bytes now requested of a block that is resized in place, if it has a sample. */
void recording_resize(uintptr_t address, uint64_t requested_bytes);

#endif
