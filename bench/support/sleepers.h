/* SPDX-License-Identifier: MIT
 *
 * sleepers.h: threads that have allocated and freed a little, keep a little, and sleep until the process
 * ends: what a large server's pool looks like to an allocator.
 */
#ifndef BENCH_SLEEPERS_H
#define BENCH_SLEEPERS_H

#include <stdint.h>

/* Returns when all of them sleep.  Ends the program when a thread cannot be made. */
void sleepers_start(uint64_t count);

#endif
