/* SPDX-License-Identifier: MIT
 *
 * counters.h: a thread's counters.  Plain fields: each thread has its own, and the driver adds them up
 * when the thread ends.
 */
#ifndef LAB_COUNTERS_H
#define LAB_COUNTERS_H

#include <stdint.h>

struct counters {
#define COUNTER(name, meaning) uint64_t name;
#include "counters.def"
#undef COUNTER
};

#endif
