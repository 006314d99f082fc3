/* model.h: a stateless model checker for the sources of src/.
 *
 * A scenario is a few threads that call real functions.  The checker runs it again and again, once
 * for each way in which the threads' atomic operations can follow each other and each value that a
 * load may return under the memory model of C, and asserts after each run.  How:
 * docs/decisions/0016. */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_THREADS_MAX = 4 };

/* What a rule does to the operations it matches. */
enum model_action {
  MODEL_WEAKEN = 1, /* memory_order_relaxed instead of what stands there */
  MODEL_SPLIT,      /* a read-modify-write is no longer atomic: a load, then a store */
  MODEL_NOTHING,    /* has no effect; what it returns is `value` */
  MODEL_WRITE,      /* writes `value` instead */
};

/* A broken variant of the sources: operations found by the function they stand in, their name
 * ("load", "store", "exchange", "add", "sub", "or", "and", "cas") and a part of their object's
 * text. */
struct model_rule {
  const char *function, *operation, *object;
  enum model_action action;
  uint64_t value;
};

enum { MODEL_RULES_MAX = 4 };
struct model_mutant {
  const char *what; /* one line */
  struct model_rule rules[MODEL_RULES_MAX];
};

struct model_scenario {
  const char *name;
  void (*set_up)(void);
  void (*threads[MODEL_THREADS_MAX])(void);
  void (*check)(void); /* after each run: what must hold when all is quiet */
  bool in_order; /* loads return the newest value, whatever their order: for large scenarios */
  const struct model_rule *always; /* ends with an empty one; NULL for none */
  const struct model_mutant *mutants;
  size_t mutant_count;
  uint64_t (*outcome)(void); /* after each run: how it ended, for the checker's own tests */
  bool is_unreduced;         /* every order of all steps, dependent or not */
};

struct model_result {
  bool is_violated;
  uint64_t schedules;
  uint64_t outcomes, digest; /* different ones, and their sum */
};
/* In a process of its own; false when that ended as it should not. */
bool model_run(const struct model_scenario *scenario, const struct model_mutant *mutant,
               struct model_result *result);

/* SCENARIO("name", .set_up = …, .threads = …, …); is one of the program's, which main runs in the
 * order of the lines. */
#define SCENARIO(title, ...) MODEL_SCENARIO(__LINE__, title, __VA_ARGS__)
#define MODEL_SCENARIO(line, ...) MODEL_SCENARIO_OF(line, __VA_ARGS__)
#define MODEL_SCENARIO_OF(line, title, ...)                                          \
  static const struct model_scenario scenario_##line = {.name = title, __VA_ARGS__}; \
  MODEL_ROW static const struct model_scenario *const row_##line = &scenario_##line
#define MODEL_ROW __attribute__((used, no_reorder, section("model_scenarios")))

/* Its broken variants: a whole array. */
#define MUTANTS(array) .mutants = array, .mutant_count = sizeof(array) / sizeof *(array)

/* For .always: threads that wait for a lock sleep at once (lock-two, lock-three look closer). */
static const struct model_rule no_spinning[] = {{"wait_for_word", "load", "word", MODEL_NOTHING, 1},
                                                {0}};

/* A scenario's assertion. */
void model_fail(const char *what, const char *file, int line);
#define MODEL_REQUIRE(condition) \
  ((condition) ? (void)0 : model_fail(#condition, __FILE__, __LINE__))

/* For os.c. */
bool model_wait(void *word, uint32_t expected);
void model_wake(void *word);
void model_pause(void);
/* The running thread has done what it was to do; does not return. */
void model_end_thread(void);
/* The number of the running thread, -1 outside of all. */
int model_self(void);

#endif
