/* The part of guest.py that runs inside the machine: starts what the host asks for, several at a
 * time.
 *
 * A line `FOLDER SECONDS` on the port asks for a run; the folder, which both see, holds `argv` and
 * `env` (each word ends with a null byte), `cwd` and, perhaps, `stdin`.  The answer is a line
 * `FOLDER STATUS`, as of waitpid, when the folder has `stdout` and `stderr`; after SECONDS all
 * processes of the run are killed, and STATUS is -1. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 4096, LINE_BYTES = 8192, PART_BYTES = 65536, LOOK_AGAIN_MS = 50 };

static void give_up(const char *what) {
  perror(what);
  _exit(127);
}

static char *contents_of(int folder, const char *name) {
  int file = openat(folder, name, O_RDONLY);
  struct stat status;
  if (file < 0 || fstat(file, &status) < 0) give_up(name);
  char *text = calloc((size_t)status.st_size + 1, 1);
  for (ssize_t got = 0, more; got < status.st_size; got += more)
    if ((more = read(file, text + got, (size_t)(status.st_size - got))) <= 0) give_up(name);
  close(file);
  return text;
}

/* The words of a file, and NULL. */
static char **words_of(int folder, const char *name) {
  char **words = calloc(WORDS_MAX, sizeof *words), *text = contents_of(folder, name);
  for (int count = 0; *text; text += strlen(text) + 1) {
    if (count == WORDS_MAX - 1) give_up("too many words");
    words[count++] = text;
  }
  return words;
}

static void become(int folder, int output, int errors) {
  char **words = words_of(folder, "argv"), **environment = words_of(folder, "env");
  char *where = contents_of(folder, "cwd");
  int input = openat(folder, "stdin", O_RDONLY);
  if (input < 0) input = open("/dev/null", O_RDONLY);
  setsid();
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (int descriptor = STDERR_FILENO + 1; descriptor < 256; descriptor++) close(descriptor);
  if (chdir(where) < 0) give_up(where);
  execvpe(words[0], words, environment);
  give_up(words[0]);
}

static long long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

/* What a pipe holds goes to its file; false at its end. */
static bool pass_on(struct pollfd *from, int to) {
  static char part[PART_BYTES];
  if (!from->revents) return true;
  ssize_t got = read(from->fd, part, sizeof part);
  if (got > 0 && write(to, part, (size_t)got) == got) return true;
  from->fd = -1;
  return false;
}

/* Until every process of the run has closed its ends, as a reader of pipes on the host would
 * wait. */
static bool passed_on_by(long long end_ms, int pipes[2], const int files[2]) {
  struct pollfd from[2] = {{pipes[0], POLLIN, 0}, {pipes[1], POLLIN, 0}};
  int open_ends = 2;
  while (open_ends) {
    if (now_ms() >= end_ms) return false;
    poll(from, 2, LOOK_AGAIN_MS);
    for (int index = 0; index < 2; index++)
      if (from[index].fd >= 0) open_ends -= !pass_on(&from[index], files[index]);
  }
  return true;
}

static int status_of(pid_t child, long long end_ms) {
  int status;
  for (;;) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (now_ms() >= end_ms) return -1;
    usleep(1000);
  }
}

static int run(const char *name, int seconds) {
  int folder = open(name, O_RDONLY | O_DIRECTORY), output[2], errors[2];
  if (folder < 0 || pipe(output) < 0 || pipe(errors) < 0) give_up(name);
  int files[2] = {openat(folder, "stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666),
                  openat(folder, "stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666)};
  pid_t child = fork();
  if (child == 0) become(folder, output[1], errors[1]);
  close(output[1]);
  close(errors[1]);
  long long end_ms = now_ms() + seconds * 1000LL;
  bool is_over = passed_on_by(end_ms, (int[]){output[0], errors[0]}, files);
  int status = is_over ? status_of(child, end_ms) : -1;
  if (status == -1) kill(-child, SIGKILL);
  close(files[0]);
  close(files[1]);
  return status;
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  int port = open(arguments[1], O_RDWR);
  FILE *asked = port < 0 ? NULL : fdopen(dup(port), "r");
  if (!asked) give_up(arguments[1]);
  signal(SIGCHLD, SIG_IGN); /* nobody waits for those that run here */
  dprintf(port, "ready 0\n");
  char line[LINE_BYTES], name[LINE_BYTES];
  for (int seconds; fgets(line, sizeof line, asked);) {
    if (sscanf(line, "%8191s %d", name, &seconds) != 2 || fork() != 0) continue;
    signal(SIGCHLD, SIG_DFL);
    int status = run(name, seconds);
    dprintf(port, "%s %d\n", name, status);
    _exit(0);
  }
  return 0;
}
