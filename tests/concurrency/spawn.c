/* vfork, posix_spawn, system, popen and daemon in a program whose other threads allocate. */
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api/sizes.h"
#include "concurrency/threads.h"

enum { WORKERS = 2, ROUNDS = 20 };

extern char **environ;
static atomic_bool stop;

static void *work(void *unused) {
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
    for (size_t i = 0; i < TIER_SIZES; i++) {
      void *block = MUST(malloc(tier_sizes[i]));
      free(block);
    }
  }
  return unused;
}

static void check_status(pid_t pid, int expected) {
  int status;
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void try_vfork(void) {
  char *arguments[] = {"sh", "-c", "exit 3", NULL};
  pid_t pid = vfork();
  if (pid == 0) {
    execv("/bin/sh", arguments);
    _exit(127);
  }
  check_status(pid, 3);
}

static void try_posix_spawn(void) {
  char *arguments[] = {"sh", "-c", "exit 4", NULL};
  pid_t pid;
  CHECK(posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ) == 0);
  check_status(pid, 4);
}

static void try_popen(void) {
  char line[16] = "";
  FILE *stream = popen("echo hello", "r");
  CHECK(stream != NULL && fgets(line, sizeof line, stream) != NULL);
  CHECK(pclose(stream) == 0 && strcmp(line, "hello\n") == 0);
}

/* daemon() forks and lets its caller exit, so a child calls it and the daemon reports by pipe. */
static void try_daemon(void) {
  int ends[2];
  char answer = 0;
  CHECK(pipe(ends) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK(daemon(1, 1) == 0);
    char *block = malloc(100 * KIB);
    block[0] = 'd';
    ssize_t written = write(ends[1], block, 1);
    free(block);
    exit(written == 1 ? 0 : 1);
  }
  check_status(pid, 0);
  close(ends[1]);
  CHECK(read(ends[0], &answer, 1) == 1 && answer == 'd');
  close(ends[0]);
}

int main(void) {
  pthread_t workers[WORKERS];
  for (size_t i = 0; i < WORKERS; i++) workers[i] = thread_start(work, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    try_vfork();
    try_posix_spawn();
    try_popen();
    try_daemon();
    CHECK(system("exit 5") == 5 << 8);
  }
  atomic_store(&stop, true);
  for (size_t i = 0; i < WORKERS; i++) thread_join(workers[i]);
  return 0;
}
