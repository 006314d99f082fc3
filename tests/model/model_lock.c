/* src/os/lock.c: one thread at a time, and what it wrote is there for the next.  The kernel's wait
 * queue is not played: who finds the word taken waits until it changes. */
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

static const struct model_mutant mutants[] = {
    {"taken in two steps", {{"word_try", "cas", "word", MODEL_SPLIT, 0}}},
    {"taken without acquire", {{"word_try", "cas", "word", MODEL_WEAKEN, 0}}},
    {"given without release", {{"word_give", "cas", "word", MODEL_WEAKEN, 0}}}};

SCENARIO("lock-two", .set_up = set_up, .threads = {enter_twice, enter_twice}, .check = check,
         MUTANTS(mutants));
SCENARIO("lock-three", .set_up = set_up, .threads = {enter, enter, enter}, .check = check,
         MUTANTS(mutants));
