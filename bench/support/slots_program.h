/* SPDX-License-Identifier: MIT
 *
 * slots_program.h: shared by the programs that run the load of slots.h and little else: the values
 * of their arguments, the rows of their tables of arguments, and their main.
 */
#ifndef BENCH_SLOTS_PROGRAM_H
#define BENCH_SLOTS_PROGRAM_H

#include "args.h"
#include "slots.h"

struct slots_load {
  uint64_t count, min_size, max_size, threads;
  uint64_t ops;   /* replacements by each thread; 0: for the time of `seconds` */
  double seconds; /* without meaning when `ops` is set */
};

/* The lines of a table of arguments.  Every program has the first three. */
#define SLOTS_ARGS(load)                                                                  \
  ARG_COUNT("slots", (load).count, 1, 1 << 28, "live blocks of each thread"),             \
      ARG_COUNT("min", (load).min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"), \
      ARG_COUNT("max", (load).max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block")
#define SLOTS_ARG_THREADS(load) \
  ARG_COUNT("threads", (load).threads, 1, ARGS_THREADS_MAX, "threads, each with its own slots")
#define SLOTS_ARG_OPS(load) \
  ARG_COUNT("ops", (load).ops, 1, UINT64_MAX / 2, "replacements by each thread")

/* The whole life of one worker. */
static inline void slots_load_work(const struct slots_load *load, struct worker *worker,
                                   slots_make *make) {
  struct slots slots = {
      .count = load->count, .min_size = load->min_size, .max_size = load->max_size, .make = make};
  slots_work(&slots, worker, load->ops);
}

/* Runs `work` on the threads of `load` and prints the result line. */
void slots_load_run(const struct usage *usage, const struct slots_load *load,
                    void (*work)(struct worker *));

/* main: reads the arguments into `load`, then slots_load_run. */
int slots_load_main(const struct usage *usage, const struct slots_load *load,
                    void (*work)(struct worker *), int argc, char **argv);

#endif
