/* SPDX-License-Identifier: MIT
 *
 * launch.c: runs a command to its end and prints what it took, in the form of a benchmark's result line.
 *
 *   launch [-e NAME=VALUE]... [-C FOLDER] [-i FILE] [-s PERCENT] COMMAND [ARGUMENT]...
 *
 *   -e  sets a variable of the command's environment only: LD_PRELOAD, LD_DEBUG
 *   -C  the command's folder
 *   -i  the command's standard input; /dev/null otherwise, as its output always is
 *   -s  spins afterwards for a part of the command's processor time: a difference to be found
 *
 * The command is a child of this small program and not of the harness, because Linux counts the process
 * that called exec into ru_maxrss: a Python of 30 MiB would hide most of the programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VARIABLES_MAX 16

struct job {
  char *variables[VARIABLES_MAX];
  int variable_count;
  const char *folder;
  const char *input;
  double spin; /* percent */
  char **command;
};

static void die(const char *what) {
  fprintf(stderr, "launch: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct job parse(int argc, char **argv) {
  struct job job = {.folder = ".", .input = "/dev/null"};
  int option;
  while ((option = getopt(argc, argv, "+e:C:i:s:")) != -1) {
    if (option == 'e' && job.variable_count < VARIABLES_MAX) {
      job.variables[job.variable_count++] = optarg;
    } else if (option == 'C') {
      job.folder = optarg;
    } else if (option == 'i') {
      job.input = optarg;
    } else if (option == 's') {
      job.spin = strtod(optarg, NULL);
    } else {
      exit(2);
    }
  }
  if (optind == argc) {
    fprintf(stderr, "launch: no command\n");
    exit(2);
  }
  job.command = argv + optind;
  return job;
}

static void redirect(const char *path, int flags, int descriptor) {
  int file = open(path, flags);
  if (file < 0 || dup2(file, descriptor) < 0) {
    die(path);
  }
  close(file);
}

static void become(const struct job *job) {
  redirect(job->input, O_RDONLY, STDIN_FILENO);
  redirect("/dev/null", O_WRONLY, STDOUT_FILENO);
  if (chdir(job->folder) != 0) {
    die(job->folder);
  }
  for (int i = 0; i < job->variable_count; i++) {
    putenv(job->variables[i]);
  }
  execvp(job->command[0], job->command);
  die(job->command[0]);
}

static double clock_now(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void spin(double percent) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  double used = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  double end = clock_now(CLOCK_PROCESS_CPUTIME_ID) + used * percent / 100;
  while (clock_now(CLOCK_PROCESS_CPUTIME_ID) < end) {
  }
}

/* Everything the command and its own children used; the peak is that of the largest process. */
static void report(double seconds) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  printf(
      "bench=launch ops=1 seconds=%.6f ns_per_op=%.0f user_s=%.6f sys_s=%.6f peak_rss_kib=%ld "
      "minor_faults=%ld\n",
      seconds, seconds * 1e9, seconds_of(usage.ru_utime), seconds_of(usage.ru_stime),
      usage.ru_maxrss, usage.ru_minflt);
}

int main(int argc, char **argv) {
  struct job job = parse(argc, argv);
  double start = clock_now(CLOCK_MONOTONIC);
  pid_t child = fork();
  if (child < 0) {
    die("fork");
  }
  if (child == 0) {
    become(&job);
  }
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      die("waitpid");
    }
  }
  double seconds = clock_now(CLOCK_MONOTONIC) - start;
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "launch: %s: ended by signal %d\n", job.command[0], WTERMSIG(status));
    return 1;
  }
  if (WEXITSTATUS(status) != 0) {
    fprintf(stderr, "launch: %s: exit status %d\n", job.command[0], WEXITSTATUS(status));
    return 1;
  }
  spin(job.spin);
  report(seconds);
  return 0;
}
