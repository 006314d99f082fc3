/* src/reclaim/helper.c and src/purge/purge.h: the helper thread sleeps until there is something to
 * give back, and is not forgotten. */
#include "config/options.h"
#include "model.h"
#include "os.h"
#include "purge/purge.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"

static void set_up(void) {
  options.helper_thread = 1;
  helper_note_thread();
  helper_start_when_worth();
  model_os.last_wait_ms = reclaim_interval_ms() + 1;
  MODEL_REQUIRE(model_os.thread_body);
}

/* Ends where the helper has been woken and would wait for the round's time. */
static void help(void) { model_os.thread_body(NULL); }

static void want(void) { purge_want(); }

/* What a round does before and after its look. */
static void begin_round(void) {
  store_seq(&purge_state, PURGE_NONE);
  store_seq(&purge_state, PURGE_ARMED);
  purge_wake_helper();
}

static void check(void) { MODEL_REQUIRE(load_relaxed(&purge_state) != PURGE_NONE); }

static const struct model_mutant mutants[] = {
    {"announced late", {{"rest", "store", "purge_helper_waits", MODEL_WEAKEN, 0}}},
    {"an old announcement", {{"purge_wake_helper", "load", "purge_helper_waits", MODEL_WEAKEN, 0}}},
    {"nobody is woken", {{"purge_wake_helper", "load", "purge_helper_waits", MODEL_NOTHING, 0}}},
    {"not announced", {{"rest", "store", "purge_helper_waits", MODEL_NOTHING, 0}}}};

SCENARIO("wake-two", .set_up = set_up, .threads = {help, want, want}, .check = check,
         MUTANTS(mutants));
SCENARIO("wake-round", .set_up = set_up, .threads = {help, want, begin_round}, .check = check,
         MUTANTS(mutants));
