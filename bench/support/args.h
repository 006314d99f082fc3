/* SPDX-License-Identifier: MIT
 *
 * args.h: `--name VALUE` arguments from one table per program; the parser and --help are loops over
 * that table.  Nothing here allocates.
 */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* One argument.  Its variable holds the default when args_parse is called.  Exactly one
 * of `count`, `seconds` and `choice` is set. */
struct arg {
  const char *name;
  const char *sentence; /* for --help; says the unit */
  uint64_t *count;      /* whole number; suffixes K, M, G (powers of 1024) */
  uint64_t minimum, maximum;
  double *seconds;            /* decimal number above 0 */
  size_t *choice;             /* index into `choices` */
  const char *const *choices; /* ends with NULL */
};

/* Most threads any program starts, and the largest block it asks for. */
enum { ARGS_THREADS_MAX = 1 << 14 };
#define ARGS_SIZE_MAX (UINT64_C(1) << 40)

#define ARG_COUNT(name_, variable, least, most, sentence_)                              \
  {                                                                                     \
    .name = (name_), .sentence = (sentence_), .count = &(variable), .minimum = (least), \
    .maximum = (most)                                                                   \
  }
#define ARG_SECONDS(variable) \
  { .name = "seconds", .sentence = "how long to measure", .seconds = &(variable) }
#define ARG_CHOICE(name_, variable, choices_, sentence_) \
  { .name = (name_), .sentence = (sentence_), .choice = &(variable), .choices = (choices_) }

struct usage {
  const char *program;
  const char *sentence; /* the purpose, for --help */
  const struct arg *args;
  size_t arg_count;
};

/* Sets the variables from the command line.  --help prints the usage and exits 0; anything that is
 * not in the table or out of its bounds prints the usage on standard error and exits 2. */
void args_parse(const struct usage *usage, int argc, char **argv);

/* For conditions between arguments: prints the usage and `complaint`, exits 2. */
_Noreturn void args_refuse(const struct usage *usage, const char *complaint);

/* The condition that most programs have: refuses --min above --max, and spans that rng_between
 * cannot draw from. */
void args_check_sizes(const struct usage *usage, uint64_t min_size, uint64_t max_size);

#endif
