/* named_samples.h: the blocks that a heap profile has drawn, of slab classes (heap/sampling.h):
 * those of a named heap without a name, which no report lists and no call of the program finds. By
 * its tag each free of a sample misses the fast path, which asks nothing of other blocks. The heap
 * is made with the first sample. */
#ifndef HAK_NAMED_NAMED_SAMPLES_H
#define HAK_NAMED_NAMED_SAMPLES_H

#include "base/compiler.h"

/* A block of the class, or NULL without memory. Waits for other threads' samples. */
void *named_samples_take(unsigned class);

#endif
