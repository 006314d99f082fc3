/* leaky: a server that loses 64 KiB a second, amid fifty times as much that it frees.
 *
 *   leak      loses each block
 *   answer    frees each block at once: most of the traffic
 *   session   keeps each block for a while, and frees the oldest for each new one: it has as
 *             many always, but all of them are older than what a profile sees at first
 *   collect   with the argument "collect": keeps each block, and knows where; instead of `leak`
 *
 * By the clock: what is due is made up for, so that a loaded machine changes nothing.  Prints
 * "ready" and goes on until it is ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  LOST_BYTES_A_SECOND = 64 << 10,
  TRAFFIC = 50, /* times that */
  LOST_BYTES = 320,
  ANSWER_BYTES = 1000,
  SESSION_BYTES = 200,
  SESSIONS = 20000,
  SESSION_ONE_IN = 4, /* answers */
  KEPT_MAX = 1 << 20
};

static void *volatile sessions[SESSIONS];
static unsigned session_count;
static void *volatile sink;
static void *volatile kept[KEPT_MAX]; /* or the compiler keeps nothing */
static unsigned kept_count;

__attribute__((noinline)) static void *leak(void) {
  char *block = malloc(LOST_BYTES);
  if (!block) abort();
  memset(block, 1, LOST_BYTES);
  return block;
}

__attribute__((noinline)) static void collect(void) {
  void *block = malloc(LOST_BYTES);
  if (!block) abort();
  memset(block, 1, LOST_BYTES);
  kept[kept_count++ % KEPT_MAX] = block;
}

__attribute__((noinline)) static void answer(void) {
  sink = malloc(ANSWER_BYTES);
  free(sink);
  sink = NULL;
}

__attribute__((noinline)) static void session(void) {
  void *volatile *place = &sessions[session_count++ % SESSIONS];
  free(*place);
  *place = malloc(SESSION_BYTES);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
  int collects = count > 1 && strcmp(arguments[1], "collect") == 0;
  double began_s = now_s(), done_bytes = 0;
  unsigned long answers = 0;
  for (int i = 0; i < SESSIONS; i++) session();
  puts("ready");
  fflush(stdout);
  for (;; usleep(1000)) {
    double due_bytes = (now_s() - began_s) * LOST_BYTES_A_SECOND;
    for (; done_bytes < due_bytes; done_bytes += LOST_BYTES) {
      if (collects)
        collect();
      else
        sink = leak();
      for (int i = 0; i < TRAFFIC * LOST_BYTES / ANSWER_BYTES; i++) {
        answer();
        if (answers++ % SESSION_ONE_IN == 0) session();
      }
    }
  }
}
