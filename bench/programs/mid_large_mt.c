/* SPDX-License-Identifier: MIT
 *
 * mid_large_mt: mid-size blocks on several threads that share nothing but the allocator.  Each
 * thread replaces random blocks of its own; what the threads cost each other is the allocator's
 * doing.  Block size and working set are separate arguments.
 * One operation is one free and one malloc.
 *
 *   --min BYTES (8K)  --max BYTES (32K)  --slots BLOCKS (256, per thread)
 *   --threads N (4)  --seconds S (1)
 */
#include "slots_program.h"

static struct slots_load load = {
    .count = 256, .min_size = 8 << 10, .max_size = 32 << 10, .threads = 4, .seconds = 1.0};

static const struct arg args[] = {SLOTS_ARGS(load), SLOTS_ARG_THREADS(load),
                                  ARG_SECONDS(load.seconds)};

static const struct usage usage = {"mid_large_mt",
                                   "Threads replace random mid-size blocks of their own.", args,
                                   sizeof args / sizeof args[0]};

static void work(struct worker *worker) { slots_load_work(&load, worker, slots_make_small); }

int main(int argc, char **argv) { return slots_load_main(&usage, &load, work, argc, argv); }
