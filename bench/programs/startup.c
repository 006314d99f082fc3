/* SPDX-License-Identifier: MIT
 *
 * startup: short processes, as in shell scripts and builds.  Starts a process, which allocates a few
 * blocks, frees them and exits, waits for it, and starts the next; the preloaded allocator is
 * inherited.  Or starts /bin/true, which is the same with blocks of the C library alone.
 * One operation is one process, from its start to its end.
 *
 *   --what blocks|true (blocks)  --blocks N (10)  --seconds S (1)
 *   --role parent|child (parent; how the program starts itself)
 *   --report DESCRIPTOR (0; a child that is to tell its peak of memory does so there)
 *
 * child_peak_rss_kib: the median VmHWM of processes that tell theirs, which no timed one does; not
 * with /bin/true, which cannot.
 */
#include "args.h"
#include "blocks.h"
#include "measure.h"
#include "rng.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

enum { WHAT_BLOCKS, WHAT_TRUE };
static const char *const what_names[] = {"blocks", "true", NULL};
enum { ROLE_PARENT, ROLE_CHILD };
static const char *const role_names[] = {"parent", "child", NULL};

static size_t what = WHAT_BLOCKS, role = ROLE_PARENT;
static uint64_t block_count = 10, report = 0;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_CHOICE("what", what, what_names, "program that each process runs"),
    ARG_COUNT("blocks", block_count, 0, 1 << 20, "blocks that a process allocates"),
    ARG_SECONDS(seconds),
    ARG_CHOICE("role", role, role_names, "how the program starts itself"),
    ARG_COUNT("report", report, 0, 1 << 20, "where a child tells its peak of memory, 0: nowhere"),
};

static const struct usage usage = {"startup", "Starts short processes, one after the other.", args,
                                   sizeof args / sizeof args[0]};

static int be_child(void) {
  struct rng rng = rng_seed(0);
  unsigned char **blocks = own_pages((block_count + 1) * sizeof *blocks);
  for (uint64_t i = 0; i < block_count; i++) {
    size_t size = rng_steep_between(&rng, 16, 4096);
    blocks[i] = block_new(size);
    touch_ends(blocks[i], size);
  }
  for (uint64_t i = 0; i < block_count; i++) {
    free(blocks[i]);
  }
  if (report == 0) {
    return 0;
  }
  long peak_kib = measure_status_kib("VmHWM");
  ssize_t written = write((int)report, &peak_kib, sizeof peak_kib);
  return written == (ssize_t)sizeof peak_kib ? 0 : 1;
}

/* The arguments of a child, in a block as a shell would have them: the parent allocates, too. */
struct command {
  char blocks[24], report[24];
  const char *words[8];
};

static struct command *command_new(int report_to, struct tally *tally) {
  struct command *command = (struct command *)block_new(sizeof *command);
  snprintf(command->blocks, sizeof command->blocks, "%llu", (unsigned long long)block_count);
  snprintf(command->report, sizeof command->report, "%d", report_to);
  const char *words[] = {"startup",       "--role",   "child",         "--blocks",
                         command->blocks, "--report", command->report, NULL};
  memcpy(command->words, words, sizeof words);
  if (what == WHAT_TRUE) {
    command->words[1] = NULL;
  }
  tally->mallocs++;
  return command;
}

static void run_child(int report_to, struct tally *tally) {
  const char *file = what == WHAT_TRUE ? "/bin/true" : "/proc/self/exe";
  struct command *command = command_new(report_to, tally);
  pid_t child;
  int status;
  int error = posix_spawn(&child, file, NULL, NULL, (char *const *)command->words, environ);
  if (error != 0 || waitpid(child, &status, 0) != child || status != 0) {
    give_up("a process did not start or did not end well");
  }
  free(command);
  tally->frees++;
}

static long median_peak_kib(struct tally *tally) {
  enum { CHILDREN = 15 };
  long peaks_kib[CHILDREN];
  int ends[2];
  if (pipe(ends) != 0) {
    give_up("no pipe");
  }
  for (int i = 0; i < CHILDREN; i++) {
    long peak_kib;
    run_child(ends[1], tally);
    if (read(ends[0], &peak_kib, sizeof peak_kib) != (ssize_t)sizeof peak_kib) {
      give_up("a process did not tell its peak of memory");
    }
    int at = i;
    for (; at > 0 && peaks_kib[at - 1] > peak_kib; at--) {
      peaks_kib[at] = peaks_kib[at - 1];
    }
    peaks_kib[at] = peak_kib;
  }
  close(ends[0]);
  close(ends[1]);
  return peaks_kib[CHILDREN / 2];
}

static int be_parent(void) {
  struct tally tally = {0};
  char peak[48] = "";
  if (what == WHAT_BLOCKS) {
    snprintf(peak, sizeof peak, " child_peak_rss_kib=%ld", median_peak_kib(&tally));
  } else {
    run_child(0, &tally); /* the file is in memory now */
  }
  measure_start(seconds);
  do {
    run_child(0, &tally);
    tally.ops++;
  } while (!measure_expired());
  measure_stop();
  measure_report(usage.program, &tally, "what=%s blocks=%llu%s", what_names[what],
                 (unsigned long long)block_count, peak);
  return 0;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  return role == ROLE_CHILD ? be_child() : be_parent();
}
