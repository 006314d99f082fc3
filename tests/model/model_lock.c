/* src/os/lock.c: the mutex over the kernel's wait queue, which the model plays. */
#include "model.h"
#include "os/lock.h"

static struct lock lock;
static unsigned inside, entered; /* what the lock guards */
static struct counters counters[MODEL_THREADS_MAX];

static void set_up(void) {}

static void enter(void) {
  lock_take(&lock, &counters[model_self()]);
  inside++;
  MODEL_REQUIRE(inside == 1);
  entered++;
  inside--;
  lock_give(&lock);
}

static void enter_twice(void) {
  enter();
  enter();
}

static void check(void) { MODEL_REQUIRE(load_relaxed(&lock.word) == 0); }

/* Threads that wait sleep at once: what they could find while they spin, others find who come later. */
static const struct model_rule no_spinning[] = {{"wait_for_word", "load", "word", MODEL_NOTHING, 1},
                                                {0}};

static const struct model_mutant mutants[] = {
    {"taken in two steps", {{"try_word", "cas", "word", MODEL_SPLIT, 0}}},
    {"taken without acquire", {{"try_word", "cas", "word", MODEL_WEAKEN, 0}}},
    {"waited for without acquire", {{"wait_for_word", "exchange", "word", MODEL_WEAKEN, 0}}},
    {"given without release", {{"give_word", "exchange", "word", MODEL_WEAKEN, 0}}},
    {"given in two steps", {{"give_word", "exchange", "word", MODEL_SPLIT, 0}}},
    {"who waits leaves no word", {{"wait_for_word", "exchange", "word", MODEL_WRITE, 1}}},
    {NULL, {{0}}}};

int main(int count, char **arguments) {
  static const struct model_scenario scenarios[] = {{.name = "lock-two",
                                                     .set_up = set_up,
                                                     .threads = {enter_twice, enter_twice},
                                                     .check = check,
                                                     .always = no_spinning,
                                                     .mutants = mutants},
                                                    {.name = "lock-three",
                                                     .set_up = set_up,
                                                     .threads = {enter, enter, enter},
                                                     .check = check,
                                                     .always = no_spinning,
                                                     .mutants = mutants},
                                                    {0}};
  return model_main(count, arguments, scenarios);
}
