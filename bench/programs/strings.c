/* SPDX-License-Identifier: MIT
 *
 * strings: the strings of an interpreter.  Thousands of variables hold small texts; each statement
 * assigns a new text, appends to one by realloc, builds an expression of several texts with
 * intermediate results that die in reverse order, cuts a text into words that wait in a line and die
 * in order, or sorts some variables.
 * One operation is one statement, on average nearly four calls of malloc, realloc and free.
 *
 *   --variables N (4096, per thread)  --max BYTES (512, of a text)  --threads N (1)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <string.h>

enum { OPERANDS = 4, LINE_WORDS = 256, SORTED = 8, LETTERS = 26 };

static uint64_t variable_count = 4096, max_length = 512, threads = 1;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("variables", variable_count, SORTED, 1 << 24, "live texts of each thread"),
    ARG_COUNT("max", max_length, 16, 1 << 20, "bytes of the longest text"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own variables"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"strings", "Builds, concatenates, cuts and sorts small strings.",
                                   args, sizeof args / sizeof args[0]};

/* Not terminated; the length tells. */
struct text {
  char *letters;
  size_t length;
};

struct interpreter {
  struct text *variables;
  struct text line[LINE_WORDS]; /* words in the order of their coming */
  uint64_t words;               /* that ever came */
  struct rng rng;
  struct tally *tally;
};

static struct text text_new(struct interpreter *in, size_t length) {
  in->tally->mallocs++;
  return (struct text){.letters = (char *)block_new(length), .length = length};
}

static void text_free(struct interpreter *in, struct text *text) {
  in->tally->frees += text->letters != NULL;
  free(text->letters);
  *text = (struct text){0};
}

/* Short texts more often, as everywhere. */
static struct text text_random(struct interpreter *in) {
  struct text text = text_new(in, rng_steep_between(&in->rng, 4, max_length / 4));
  memset(text.letters, 'a' + (int)rng_below(&in->rng, LETTERS), text.length);
  return text;
}

static struct text text_join(struct interpreter *in, struct text left, struct text right) {
  size_t length = left.length + right.length;
  struct text text = text_new(in, length < max_length ? length : max_length);
  memcpy(text.letters, left.letters, left.length);
  memcpy(text.letters + left.length, right.letters, text.length - left.length);
  return text;
}

static struct text *any_variable(struct interpreter *in) {
  return &in->variables[rng_below(&in->rng, variable_count)];
}

static void replace(struct interpreter *in, struct text *variable, struct text text) {
  text_free(in, variable);
  *variable = text;
}

static void append(struct interpreter *in) {
  struct text *variable = any_variable(in);
  size_t length = variable->length + rng_between(&in->rng, 1, 16);
  if (length > max_length) {
    replace(in, variable, text_random(in));
    return;
  }
  char *letters = realloc(variable->letters, length);
  if (letters == NULL) {
    out_of_memory(length);
  }
  if (letters[0] < 'a' || letters[0] >= 'a' + LETTERS) {
    give_up("realloc lost the content");
  }
  memset(letters + variable->length, letters[0], length - variable->length);
  *variable = (struct text){.letters = letters, .length = length};
  in->tally->mallocs++;
}

/* a + b + c + d: the intermediate results die last in, first out. */
static void evaluate(struct interpreter *in) {
  struct text results[OPERANDS];
  results[0] = text_random(in);
  for (int i = 1; i < OPERANDS; i++) {
    results[i] = text_join(in, results[i - 1], *any_variable(in));
  }
  replace(in, any_variable(in), results[OPERANDS - 1]);
  for (int i = OPERANDS - 2; i >= 0; i--) {
    text_free(in, &results[i]);
  }
}

static void cut(struct interpreter *in) {
  enum { WORD_LENGTH = 24, MOST_WORDS = 8 };
  struct text text = *any_variable(in);
  for (size_t at = 0; at < text.length && at < MOST_WORDS * WORD_LENGTH; at += WORD_LENGTH) {
    size_t rest = text.length - at;
    struct text word = text_new(in, rest < WORD_LENGTH ? rest : WORD_LENGTH);
    memcpy(word.letters, text.letters + at, word.length);
    replace(in, &in->line[in->words++ % LINE_WORDS], word);
  }
}

static int compare(struct text left, struct text right) {
  size_t length = left.length < right.length ? left.length : right.length;
  int difference = memcmp(left.letters, right.letters, length);
  return difference != 0 ? difference : (left.length > right.length) - (left.length < right.length);
}

/* Neighbouring variables, by insertion. */
static void sort(struct interpreter *in) {
  struct text *texts = &in->variables[rng_below(&in->rng, variable_count - SORTED + 1)];
  for (int i = 1; i < SORTED; i++) {
    struct text text = texts[i];
    int at = i;
    for (; at > 0 && compare(texts[at - 1], text) > 0; at--) {
      texts[at] = texts[at - 1];
    }
    texts[at] = text;
  }
}

static void statement(struct interpreter *in) {
  switch (rng_below(&in->rng, 8)) {
    case 0: cut(in); break;
    case 1: sort(in); break;
    case 2:
    case 3: evaluate(in); break;
    case 4:
    case 5: append(in); break;
    default: replace(in, any_variable(in), text_random(in));
  }
  in->tally->ops++;
}

static void work(struct worker *worker) {
  enum { OPS_BETWEEN_CLOCKS = 64 };
  struct tally tally = {0};
  struct interpreter in = {.rng = worker->rng, .tally = &tally};

  in.variables = own_pages(variable_count * sizeof *in.variables);
  for (uint64_t i = 0; i < variable_count; i++) {
    in.variables[i] = text_random(&in);
  }
  for (uint64_t i = 0; i < 2 * variable_count; i++) {
    statement(&in);
  }
  tally.ops = 0;
  team_begin(worker);
  do {
    for (int i = 0; i < OPS_BETWEEN_CLOCKS; i++) {
      statement(&in);
    }
  } while (!measure_expired());
  team_end(worker);
  for (uint64_t i = 0; i < variable_count; i++) {
    text_free(&in, &in.variables[i]);
  }
  for (uint64_t i = 0; i < LINE_WORDS; i++) {
    text_free(&in, &in.line[i]);
  }
  worker->tally = tally;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "threads=%llu variables=%llu max=%llu",
                 (unsigned long long)threads, (unsigned long long)variable_count,
                 (unsigned long long)max_length);
  return 0;
}
