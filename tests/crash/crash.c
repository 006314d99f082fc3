/* Dies by a signal: inside the allocator (argv[1] `inside`), in the program's own code (`outside`),
 * or by one that is sent (`sent`); or handles it itself (`handled`). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

static void handle(int signal) {
  (void)signal;
  _exit(7);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  void *volatile block = malloc(64);
  if (strcmp(argv[1], "inside") == 0) {
    hak_stats_json(hide((void *)8), 100); /* writes to an unmapped buffer */
  } else if (strcmp(argv[1], "outside") == 0) {
    *(volatile char *)hide((void *)8) = 1;
  } else if (strcmp(argv[1], "sent") == 0) {
    kill(getpid(), SIGSEGV);
  } else {
    signal(SIGSEGV, handle);
    hak_stats_json(hide((void *)8), 100);
  }
  free(block);
  return 0;
}
