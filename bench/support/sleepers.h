/* SPDX-License-Identifier: MIT
 *
 * sleepers.h: threads that have allocated and freed a little, keep a little, and sleep until the process
 * ends, as an allocator sees the thread pool of a large server.
 */
#ifndef BENCH_SLEEPERS_H
#define BENCH_SLEEPERS_H

#include <stdint.h>

/* Returns when all of them sleep.  Ends the program when a thread cannot be made. */
void sleepers_start(uint64_t count);

#endif
