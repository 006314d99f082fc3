/* SPDX-License-Identifier: MIT
 *
 * random_mixed: a working set of small blocks of mixed sizes and random lives.  Each thread frees a
 * random block of its own and puts a new one of random size in its place.
 * One operation is one free and one malloc.
 *
 *   --slots BLOCKS (4096, per thread)  --min BYTES (16)  --max BYTES (1040)
 *   --threads N (1)  --seconds S (1)
 */
#include "slots_program.h"

static struct slots_load load = {
    .count = 4096, .min_size = 16, .max_size = 1040, .threads = 1, .seconds = 1.0};

static const struct arg args[] = {SLOTS_ARGS(load), SLOTS_ARG_THREADS(load),
                                  ARG_SECONDS(load.seconds)};

static const struct usage usage = {"random_mixed",
                                   "Replaces random blocks of a working set of small blocks.", args,
                                   sizeof args / sizeof args[0]};

static void work(struct worker *worker) { slots_load_work(&load, worker, slots_make_small); }

int main(int argc, char **argv) { return slots_load_main(&usage, &load, work, argc, argv); }
