/* soon HOW BYTES: a free that the fast path believes, in a program that allocates a little; it is
 * found when the first block of another class is wanted.  Ends by _exit, so that nothing is found
 * at the end. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "misuse/hide.h"
#include "ways.h"

static size_t bytes;

WAY(interleaved) {
  void *first = malloc(bytes), *second = malloc(bytes);
  free(hide(first));
  free(hide(second));
  free(hide(first));
}

WAY(two_between) {
  void *first = malloc(bytes), *second = malloc(bytes), *third = malloc(bytes);
  free(hide(first));
  free(hide(second));
  free(hide(third));
  free(hide(first));
}

WAY(odd) { free(hide((char *)malloc(bytes) + 1)); }

WAY(inside) { free(hide((char *)malloc(bytes) + bytes / 2)); }

/* Where a block may begin, none of which has been handed out. */
WAY(never_handed_out) { free(hide((char *)malloc(bytes) + bytes * 6)); }

static pthread_barrier_t turn;
static void *passed;

static void *free_in_turn(void *unused) {
  pthread_barrier_wait(&turn);
  free(hide(passed));
  pthread_barrier_wait(&turn);
  return unused;
}

WAY(by_two_threads) {
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  pthread_create(&thread, NULL, free_in_turn, NULL); /* which allocates */
  passed = malloc(bytes);
  free(hide(passed));
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn);
}

static bool is_handed_out_twice(void) {
  enum { COUNT = 100 };
  char *blocks[COUNT];
  for (int i = 0; i < COUNT; i++) {
    blocks[i] = malloc(bytes);
    for (int j = 0; j < i; j++)
      if (blocks[i] < blocks[j] + bytes && blocks[j] < blocks[i] + bytes) return true;
  }
  return false;
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  bytes = strtoul(arguments[2], NULL, 0);
  if (!run_way(arguments[1])) return 2;
  free(hide(malloc(bytes < 2000 ? 3000 : 700))); /* of a class that was not used yet */
  if (is_handed_out_twice()) (void)!write(1, "handed out twice\n", 17);
  _exit(0);
}
