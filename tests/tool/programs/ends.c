/* Keeps 8 MiB of one site and ends at once, in the way that its argument says; "held" first holds
 * 64 MiB of another site until a line comes on standard input, and gives them back. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "steps.h"

enum { KEPT = 8192, KEPT_BYTES = 1000, HELD = 16384, HELD_BYTES = 4000 };

static void *kept[KEPT], *held[HELD];
static int *volatile nowhere;

__attribute__((noinline)) void keeps(void) {
  for (int i = 0; i < KEPT; i++) {
    kept[i] = malloc(KEPT_BYTES);
    memset(kept[i], 1, KEPT_BYTES);
  }
}

__attribute__((noinline)) void holds(void) {
  for (int i = 0; i < HELD; i++) {
    held[i] = malloc(HELD_BYTES);
    memset(held[i], 1, HELD_BYTES);
  }
}

static void executes(const char *own) {
  execlp(own, own, "exit", (char *)NULL);
  abort();
}

static void executes_another(void) {
  unsetenv("LD_PRELOAD");
  execl("/bin/true", "true", (char *)NULL);
  abort();
}

/* The child allocates as much again. */
static void forks(void) {
  if (fork() == 0) {
    keeps();
    _exit(0);
  }
  wait(NULL);
}

int main(int count, char **arguments) {
  const char *how = count > 1 ? arguments[1] : "return";
  if (!strcmp(how, "held")) {
    holds();
    step("held");
    for (int i = 0; i < HELD; i++) free(held[i]);
  }
  keeps();
  if (!strcmp(how, "waits")) step("waits");
  if (!strcmp(how, "exit")) exit(3);
  if (!strcmp(how, "_exit")) _exit(4);
  if (!strcmp(how, "killed")) raise(SIGKILL);
  if (!strcmp(how, "terminated")) raise(SIGTERM);
  if (!strcmp(how, "aborts")) abort();
  if (!strcmp(how, "crashes")) return *nowhere;
  if (!strcmp(how, "executes")) executes(arguments[0]);
  if (!strcmp(how, "executes-another")) executes_another();
  if (!strcmp(how, "forks")) forks();
  return 0;
}
