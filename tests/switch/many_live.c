/* argv[1] live blocks of argv[2] bytes; what they cost beside a program without a profile is its.
 * Answers each line on standard input; after the first it frees all but each hundredth. */
#include <stdio.h>
#include <stdlib.h>

struct link {
  struct link *next;
};

static struct link *make(size_t count, size_t bytes) {
  struct link *first = NULL;
  for (; count; count--) {
    struct link *link = malloc(bytes);
    if (!link) abort();
    link->next = first;
    first = link;
  }
  return first;
}

static void free_most(struct link *first) {
  for (struct link *kept = first; kept; kept = kept->next)
    for (unsigned count = 1; count < 100 && kept->next; count++) {
      struct link *next = kept->next;
      kept->next = next->next;
      free(next);
    }
}

int main(int argument_count, char **arguments) {
  char line[16];
  if (argument_count != 3) return 2;
  struct link *first = make(strtoul(arguments[1], NULL, 10), strtoul(arguments[2], NULL, 10));
  for (int turn = 0;; turn++) {
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 0;
    if (!turn) free_most(first);
  }
}
