/* SPDX-License-Identifier: MIT
 *
 * args.c: see args.h.
 */
#include "args.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_choices(FILE *out, const struct arg *arg) {
  for (size_t i = 0; arg->choices[i] != NULL; i++) {
    fprintf(out, "%s%s", i == 0 ? " (" : ", ", arg->choices[i]);
  }
  fprintf(out, "; default %s)\n", arg->choices[*arg->choice]);
}

static void print_usage(FILE *out, const struct usage *usage) {
  fprintf(out, "usage: %s [--NAME VALUE]...\n%s\n\n", usage->program, usage->sentence);
  for (size_t i = 0; i < usage->arg_count; i++) {
    const struct arg *arg = &usage->args[i];
    fprintf(out, "  --%-12s %s", arg->name, arg->sentence);
    if (arg->count != NULL) {
      fprintf(out, " (%llu..%llu; default %llu)\n", (unsigned long long)arg->minimum,
              (unsigned long long)arg->maximum, (unsigned long long)*arg->count);
    } else if (arg->seconds != NULL) {
      fprintf(out, " (default %g)\n", *arg->seconds);
    } else {
      print_choices(out, arg);
    }
  }
  fputs("\nWhole numbers take the suffixes K, M and G (powers of 1024).\n", out);
}

_Noreturn void args_refuse(const struct usage *usage, const char *complaint) {
  print_usage(stderr, usage);
  fprintf(stderr, "\n%s: %s\n", usage->program, complaint);
  exit(2);
}

void args_check_sizes(const struct usage *usage, uint64_t min_size, uint64_t max_size) {
  if (min_size > max_size) {
    args_refuse(usage, "--min is above --max");
  }
  if (max_size - min_size > UINT32_MAX - 1) {
    args_refuse(usage, "--max is more than 4 GiB above --min");
  }
}

static unsigned suffix_shift(char suffix) {
  switch (suffix) {
    case 'K': return 10;
    case 'M': return 20;
    case 'G': return 30;
    default: return 0;
  }
}

static bool parse_count(const struct arg *arg, const char *text) {
  char *end = NULL;
  if (text[0] < '0' || text[0] > '9') { /* strtoull would take spaces and signs */
    return false;
  }
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  unsigned shift = suffix_shift(*end);
  if (shift != 0) {
    end++;
  }
  if (errno != 0 || *end != '\0' || value > (UINT64_MAX >> shift)) {
    return false;
  }
  value <<= shift;
  if (value < arg->minimum || value > arg->maximum) {
    return false;
  }
  *arg->count = value;
  return true;
}

static bool parse_seconds(const struct arg *arg, const char *text) {
  char *end = NULL;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0.0 && value < 1e6)) {
    return false;
  }
  *arg->seconds = value;
  return true;
}

static bool parse_choice(const struct arg *arg, const char *text) {
  for (size_t i = 0; arg->choices[i] != NULL; i++) {
    if (strcmp(arg->choices[i], text) == 0) {
      *arg->choice = i;
      return true;
    }
  }
  return false;
}

static bool parse_value(const struct arg *arg, const char *text) {
  if (arg->count != NULL) {
    return parse_count(arg, text);
  }
  return arg->seconds != NULL ? parse_seconds(arg, text) : parse_choice(arg, text);
}

static const struct arg *find_arg(const struct usage *usage, const char *word) {
  for (size_t i = 0; i < usage->arg_count; i++) {
    if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, usage->args[i].name) == 0) {
      return &usage->args[i];
    }
  }
  return NULL;
}

/* The usage shows defaults, so --help is looked for before any variable changes. */
static void answer_help(const struct usage *usage, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      print_usage(stdout, usage);
      exit(0);
    }
  }
}

void args_parse(const struct usage *usage, int argc, char **argv) {
  answer_help(usage, argc, argv);
  for (int i = 1; i < argc; i += 2) {
    char complaint[256];
    const struct arg *arg = find_arg(usage, argv[i]);
    if (arg == NULL) {
      snprintf(complaint, sizeof complaint, "unknown argument %s", argv[i]);
      args_refuse(usage, complaint);
    }
    if (i + 1 == argc || !parse_value(arg, argv[i + 1])) {
      snprintf(complaint, sizeof complaint, "bad value for %s: %s", argv[i],
               i + 1 == argc ? "(missing)" : argv[i + 1]);
      args_refuse(usage, complaint);
    }
  }
}
