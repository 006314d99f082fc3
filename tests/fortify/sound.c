/* Nothing wrong, by threads, in signal handlers, in forked children, in a thread that is cancelled
 * while it reads. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "misuse/hide.h"

int early_answer(void);
int early_constructed(void);

static char *shared;
static volatile sig_atomic_t handled;

static void handler(int unused) {
  char copy[100];
  (void)unused;
  memcpy(copy, shared, 100);
  memmove(shared, copy, 100);
  if (strlen(shared) != 99) _exit(3);
  handled++;
}

static void work(unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    size_t size = round * 7919 % (round % 64 ? 2000 : 100000) + 1;
    char *text = hide(malloc(size)), *copy;
    memset(text, 'a', size - 1);
    text[size - 1] = 0;
    copy = strdup(text);
    if (memcmp(copy, text, size) || strlen(copy) != size - 1) _exit(4);
    text = realloc(text, size * 2);
    memcpy(text + size, copy, size);
    text = realloc(text, size / 2 + 1);
    memset(text, 'b', size / 2 + 1);
    free(text);
    free(copy);
    free(calloc(3, size));
  }
}

static void *body(void *unused) {
  work(3000);
  return unused;
}

static void *read_for_ever(void *end) {
  char *target = hide(malloc(100));
  while (read(*(int *)end, target, 100) > 0) continue;
  return NULL;
}

int main(void) {
  if (!early_answer() || !early_constructed()) return 2;
  shared = hide(malloc(100));
  memset(shared, 'x', 99);
  shared[99] = 0;
  signal(SIGPROF, handler);
  struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &often, NULL);
  pthread_t threads[4];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, body, NULL);
  int ends[2];
  if (pipe(ends)) return 2;
  pthread_create(&threads[3], NULL, read_for_ever, &ends[0]);
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    if (!child) {
      work(100);
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status) return 5;
  }
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  pthread_cancel(threads[3]);
  pthread_join(threads[3], NULL);
  while (!handled) work(10);
  return 0;
}
