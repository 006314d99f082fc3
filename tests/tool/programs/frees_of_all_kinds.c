/* Frees blocks of all kinds and sizes, in turns, own ones and another thread's, while it may be
 * profiled.  Prints "ready", goes on until it is ended. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 512, ROUNDS_A_PAUSE = 4 };

static const size_t sizes[] = {16, 100, 200, 400, 1000, 5000, 20000, 70000, 300000, 2000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void *handed[BLOCKS];
static pthread_barrier_t turn;

/* Half of them from the aligned function, so that all begin somewhere else. */
static void *make(unsigned number) {
  size_t bytes = sizes[number % SIZES];
  char *block = number & 64 ? aligned_alloc(64, (bytes + 63) / 64 * 64) : malloc(bytes);
  block[0] = block[bytes - 1] = 1;
  return block;
}

static void own_blocks(void) {
  void *blocks[BLOCKS];
  for (unsigned number = 0; number < BLOCKS; number++) blocks[number] = make(number);
  for (unsigned number = 0; number < BLOCKS; number++) {
    if (number % 3 == 0) blocks[number] = realloc(blocks[number], sizes[(number + 1) % SIZES]);
    free(blocks[number]);
  }
}

static void *free_handed(void *unused) {
  for (;;) {
    pthread_barrier_wait(&turn);
    for (unsigned number = 0; number < BLOCKS; number++) free(handed[number]);
    own_blocks();
    pthread_barrier_wait(&turn);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  pthread_create(&thread, NULL, free_handed, NULL);
  puts("ready");
  fflush(stdout);
  for (unsigned round = 0;; round++) {
    for (unsigned number = 0; number < BLOCKS; number++) handed[number] = make(number);
    pthread_barrier_wait(&turn);
    own_blocks();
    pthread_barrier_wait(&turn);
    if (round % ROUNDS_A_PAUSE == 0) usleep(1000);
  }
}
