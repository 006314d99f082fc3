/* SPDX-License-Identifier: MIT
 *
 * oversubscription: more threads than processors.  The load of random_mixed on several threads for
 * each processor: shows whether a thread that is preempted inside the allocator delays the others.
 * With --per-core 1 the same load with one thread for each processor, to compare with.
 * One operation is one free and one malloc.
 *
 *   --per-core N (8)  --slots BLOCKS (1024, per thread)  --min BYTES (16)  --max BYTES (1040)
 *   --seconds S (1)
 */
#include "slots_program.h"

#include <sched.h>

static uint64_t per_core = 8;
static struct slots_load load = {.count = 1024, .min_size = 16, .max_size = 1040, .seconds = 1.0};

static const struct arg args[] = {
    ARG_COUNT("per-core", per_core, 1, 64, "threads for each processor the process may use"),
    SLOTS_ARGS(load), ARG_SECONDS(load.seconds)};

static const struct usage usage = {"oversubscription",
                                   "Replaces random small blocks on more threads than processors.",
                                   args, sizeof args / sizeof args[0]};

static void work(struct worker *worker) { slots_load_work(&load, worker, slots_make_small); }

static uint64_t usable_processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint64_t)CPU_COUNT(&set) : 1;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  load.threads = per_core * usable_processors();
  slots_load_run(&usage, &load, work);
  return 0;
}
