/* processes.c: a scenario, or a broken variant, explored in a process of its own. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"

enum { TRACE_MAX = 100, SECONDS_MAX = 300 }; /* steps printed; of one scenario or variant */

/* How the process of a search ends; anything else is the checker's fault. */
enum { EXIT_SOUND, EXIT_VIOLATED, EXIT_TOO_LARGE };

const struct model_scenario *scenario;
const struct model_mutant *mutant;

/* ---- failing --------------------------------------------------------------------------------- */

static const char *const kind_names[] = {"load",  "store", "rmw",    "cas",
                                         "pause", "wait",  "asleep", "wake"};

static void print_trace(void) {
  unsigned from = step_count > TRACE_MAX ? step_count - TRACE_MAX : 1;
  for (unsigned number = from; number <= step_count; number++) {
    const struct step *step = &steps[number];
    const struct operation *operation = &step->operation;
    fprintf(stderr, "  %3u  thread %u  %s:%d  %s(%s", number, step->thread,
            operation->site->function, operation->site->line, kind_names[operation->kind],
            operation->site->object);
    fprintf(stderr, ", %#lx) -> %#lx%s\n", (unsigned long)step->value, (unsigned long)step->result,
            step->choice ? "  (old)" : "");
  }
}

_Noreturn void violation(const char *what, const char *file, int line) {
  if (!mutant || getenv("MODEL_TRACE")) {
    fprintf(stderr, "model: %s: schedule %lu: %s (%s:%d)\n", scenario->name,
            (unsigned long)schedules + 1, what, file, line);
    print_trace();
  }
  printf("%lu", (unsigned long)schedules + 1);
  fflush(stdout);
  _exit(EXIT_VIOLATED);
}

void model_fail(const char *what, const char *file, int line) { violation(what, file, line); }

_Noreturn void overflow(const char *what) {
  fprintf(stderr, "model: %s: too many %s\n", scenario->name, what);
  print_trace();
  _exit(EXIT_TOO_LARGE);
}

/* ---- main ------------------------------------------------------------------------------------ */

static void hangs(int signal) {
  (void)signal;
  violation("takes too long", "a loop without end, or too many schedules; seconds", SECONDS_MAX);
}

static void crashes(int signal) {
  (void)signal;
  violation("crashes", "signal", SIGSEGV);
}

/* By the processor's time: the machine may be busy. */
static void limit_time(void) {
  struct itimerval limit = {.it_value.tv_sec = SECONDS_MAX};
  signal(SIGPROF, hangs);
  setitimer(ITIMER_PROF, &limit, NULL);
}

static void explore(int output) {
  limit_time();
  signal(SIGSEGV, crashes);
  dup2(output, STDOUT_FILENO);
  search();
  printf("%lu %lu %lu", (unsigned long)schedules, (unsigned long)outcome_count,
         (unsigned long)outcome_sum);
  fflush(stdout);
  _exit(EXIT_SOUND);
}

bool model_run(const struct model_scenario *which, const struct model_mutant *broken,
               struct model_result *result) {
  int ends[2], status;
  char said[128] = "";
  fflush(NULL);
  if (pipe(ends) != 0) return false;
  pid_t id = fork();
  if (id == 0) {
    scenario = which;
    mutant = broken;
    explore(ends[1]);
  }
  close(ends[1]);
  ssize_t got = read(ends[0], said, sizeof said - 1);
  close(ends[0]);
  if (id < 0 || waitpid(id, &status, 0) != id || got <= 0 || !WIFEXITED(status)) return false;
  result->is_violated = WEXITSTATUS(status) == EXIT_VIOLATED;
  char *end;
  result->schedules = strtoul(said, &end, 10);
  result->outcomes = strtoul(end, &end, 10);
  result->digest = strtoul(end, &end, 10);
  return WEXITSTATUS(status) <= EXIT_VIOLATED;
}
