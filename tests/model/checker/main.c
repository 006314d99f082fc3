/* main.c: runs a program's scenarios and their broken variants; model_litmus has a main of its
 * own. */
#include <stdio.h>
#include <string.h>

#include "model.h"

static bool run_mutants(const struct model_scenario *which) {
  bool all_found = true;
  for (size_t index = 0; index < which->mutant_count; index++) {
    const struct model_mutant *broken = &which->mutants[index];
    struct model_result result = {0};
    bool is_found = model_run(which, broken, &result) && result.is_violated;
    printf("model: %s, broken (%s): %s %lu schedules\n", which->name, broken->what,
           is_found ? "found after" : "NOT FOUND in", (unsigned long)result.schedules);
    all_found &= is_found;
  }
  return all_found;
}

static bool run_scenario(const struct model_scenario *which) {
  struct model_result result = {0};
  bool is_sound = model_run(which, NULL, &result) && !result.is_violated;
  printf("model: %s: %lu schedules%s%s\n", which->name, (unsigned long)result.schedules,
         which->in_order ? ", newest values only" : "", is_sound ? "" : ": VIOLATED");
  return run_mutants(which) && is_sound;
}

extern const struct model_scenario *const __start_model_scenarios[];
extern const struct model_scenario *const __stop_model_scenarios[];

int main(int count, char **arguments) {
  const struct model_scenario *const *row = __start_model_scenarios;
  bool all_well = true;
  for (; row < __stop_model_scenarios; row++)
    if (count < 2 || strstr((*row)->name, arguments[1])) all_well &= run_scenario(*row);
  return all_well ? 0 : 1;
}
