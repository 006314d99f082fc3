/* server: a heap that changes all the time, part of which is lost.  Prints "ready" and goes on
 * until it is ended.
 *
 *   server LOST LIVE
 *
 * Nothing points to the LOST blocks.  The LIVE ones are in a list; `serve` moves one from its first
 * third to its beginning all the time, so that a scan may find the list cut there, and take what
 * comes after that for unreachable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1000, PACE = 100, PRIME = 7919 };

struct node {
  struct node *next;
  char bytes[BLOCK_BYTES - sizeof(struct node *)];
};

static struct node *volatile first; /* or the compiler keeps it in a register */

__attribute__((noinline)) static void lose(void) {
  volatile char *block = malloc(BLOCK_BYTES);
  if (!block) abort();
  for (int i = 0; i < BLOCK_BYTES; i++) block[i] = 1;
}

static void add(void) {
  struct node *node = malloc(sizeof *node);
  if (!node) abort();
  memset(node, 2, sizeof *node);
  node->next = first;
  first = node;
}

static void serve(unsigned place) {
  struct node *before = first;
  while (place--) before = before->next;
  struct node *found = before->next;
  before->next = found->next;
  found->next = first;
  first = found;
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  unsigned lost = (unsigned)atoi(arguments[1]), live = (unsigned)atoi(arguments[2]);
  for (unsigned i = 0; i < lost; i++) lose();
  for (unsigned i = 0; i < live; i++) add();
  puts("ready");
  fflush(stdout);
  for (unsigned i = 1;; i++) {
    serve(i * PRIME % (live / 3));
    if (i % PACE == 0) usleep(1000);
  }
}
