/* One misuse of a guarded block, named by argv[1].  With HAKMEM_GUARD_RATE=1 every request that
 * misses its magazine is guarded; which side the guard is near is chosen at random, so blocks are
 * taken until one lies where the misuse shows. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "misuse/hide.h"

/* Global, for their names to be known when the program is linked with -rdynamic. */
char *take(int (*lies_right)(const char *), size_t size);
void release(char *block);

enum { SIZE = 96, PAGE_BYTES = 4096, TRIES = 1000 };

static int ends_at_page(const char *block) { return ((uintptr_t)block + SIZE) % PAGE_BYTES == 0; }
static int begins_at_page(const char *block) { return (uintptr_t)block % PAGE_BYTES == 0; }
static int anywhere(const char *block) { return block != NULL; }

/* A block of the size that lies as wanted.  Only guarded ones have exactly the odd size asked
 * for. */
__attribute__((noinline)) char *take(int (*lies_right)(const char *), size_t size) {
  for (int attempt = 0; attempt < TRIES; attempt++) {
    char *block = malloc(size);
    if (malloc_usable_size(block) == size && lies_right(block)) return hide(block);
    if (malloc_usable_size(block) == size) free(block);
  }
  puts("no such block");
  exit(3);
}

__attribute__((noinline)) void release(char *block) { free(hide(block)); }

static void *release_on_thread(void *block) {
  release(block);
  return NULL;
}

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info, (void)context;
  _exit(7);
}

static struct sigaction before;

static void on_signal_chained(int signal, siginfo_t *info, void *context) {
  before.sa_sigaction(signal, info, context);
}

static void handle(void (*handler)(int, siginfo_t *, void *)) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, &before);
}

static volatile char seen;

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "overflow-read") == 0) seen = take(ends_at_page, SIZE)[SIZE];
  if (strcmp(what, "overflow-write") == 0) *(volatile char *)(take(ends_at_page, SIZE) + SIZE) = 1;
  if (strcmp(what, "underflow-read") == 0) seen = take(begins_at_page, SIZE)[-1];
  if (strcmp(what, "underflow-write") == 0) *(volatile char *)(take(begins_at_page, SIZE) - 1) = 1;
  if (strcmp(what, "overflow-found-by-free") == 0) {
    char *block = take(anywhere, SIZE - 1);
    block[SIZE - 1] = 1;
    release(block);
  }
  if (strcmp(what, "use-after-free-read") == 0) {
    char *block = take(ends_at_page, SIZE);
    release(block);
    seen = ((volatile char *)block)[5];
  }
  if (strcmp(what, "use-after-free-write") == 0) {
    char *block = take(ends_at_page, SIZE);
    release(block);
    ((volatile char *)block)[0] = 1;
  }
  if (strcmp(what, "use-after-free-by-thread") == 0) {
    pthread_t thread;
    char *block = take(ends_at_page, SIZE);
    pthread_create(&thread, NULL, release_on_thread, block);
    pthread_join(thread, NULL);
    seen = ((volatile char *)block)[0];
  }
  if (strcmp(what, "double-free") == 0) {
    char *block = take(ends_at_page, SIZE);
    release(block);
    release(block);
  }
  if (strcmp(what, "realloc-after-free") == 0) {
    char *block = take(ends_at_page, SIZE);
    release(block);
    block = realloc(hide(block), 500);
  }
  if (strcmp(what, "invalid-free") == 0) release(take(ends_at_page, SIZE) + 16);
  if (strcmp(what, "handled") == 0) {
    handle(on_signal);
    ((volatile char *)take(ends_at_page, SIZE))[SIZE] = 1;
  }
  if (strcmp(what, "handled-chained") == 0) {
    handle(on_signal_chained);
    ((volatile char *)take(ends_at_page, SIZE))[SIZE] = 1;
  }
  if (strcmp(what, "handled-elsewhere") == 0) {
    handle(on_signal);
    take(ends_at_page, SIZE);
    *(volatile char *)hide((void *)8) = 1;
  }
  return 0;
}
