/* SPDX-License-Identifier: MIT
 *
 * slots_program.c: see slots_program.h.
 */
#include "slots_program.h"

void slots_load_run(const struct usage *usage, const struct slots_load *load,
                    void (*work)(struct worker *)) {
  args_check_sizes(usage, load->min_size, load->max_size);
  struct tally tally = team_run(load->threads, load->seconds, work);
  measure_report(usage->program, &tally, "threads=%llu slots=%llu min=%llu max=%llu",
                 (unsigned long long)load->threads, (unsigned long long)load->count,
                 (unsigned long long)load->min_size, (unsigned long long)load->max_size);
}

int slots_load_main(const struct usage *usage, const struct slots_load *load,
                    void (*work)(struct worker *), int argc, char **argv) {
  args_parse(usage, argc, argv);
  slots_load_run(usage, load, work);
  return 0;
}
