/* asked: blocks of all sizes, each asked for by a function of its own.  Prints "NAME ADDRESS SIZE",
 * then "ready". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *volatile kept[64];
static int count;

static void *keep(const char *name, void *block, size_t bytes) {
  if (!block) abort();
  memset(block, 1, bytes < 4096 ? bytes : 4096);
  kept[count++] = block;
  printf("%s %p %zu\n", name, block, bytes);
  return block;
}

#define ASK(name, bytes, expression)                 \
  __attribute__((noinline)) void *ask_##name(void) { \
    void *block = expression;                        \
    return keep(#name, block, bytes);                \
  }

ASK(tiny, 40, malloc(40))
ASK(small, 500, calloc(5, 100))
ASK(mid, 9000, malloc(9000))
ASK(large, 100000, malloc(100000))
ASK(big, 5 << 20, malloc(5 << 20))
ASK(aligned, 700, aligned_alloc(256, 768))
ASK(aligned_large, 80000, aligned_alloc(4096, 81920))
ASK(grown, 6 << 20, realloc(malloc(3 << 20), 6 << 20))
ASK(freed_tiny, 56, malloc(56))
ASK(freed_mid, 12000, malloc(12000))
ASK(freed_large, 150000, malloc(150000))
ASK(freed_big, 7 << 20, malloc(7 << 20))

static void *thread(void *unused) {
  ask_mid();
  for (;;) pause();
  return unused;
}

int main(void) {
  pthread_t id;
  ask_tiny();
  ask_small();
  if (pthread_create(&id, NULL, thread, NULL)) abort();
  while (!kept[2]) usleep(1000);
  ask_large();
  ask_big();
  ask_aligned();
  ask_aligned_large();
  ask_grown();
  free(ask_freed_tiny());
  free(ask_freed_mid());
  free(ask_freed_large());
  free(ask_freed_big());
  memset((void *)&kept[8], 0, sizeof kept - 8 * sizeof *kept);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
