/* 64 sites, each of which makes so many blocks as it is told.
 *
 *   many_sites      on standard input: "round BYTES N0 N1 … N63" (site k makes Nk blocks of
 *                   BYTES), "give" (frees all); each is answered by a line
 *
 * First it prints where the sites are: 64 addresses, and the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES = 64, KEPT_MAX = 1 << 21 };

static void *kept[KEPT_MAX];
static size_t kept_count;
static volatile int last_site;

#define MAKE(number)                                                                        \
  __attribute__((noinline, section("site_code"))) static void make_##number(size_t bytes,   \
                                                                            size_t times) { \
    for (; times; times--) kept[kept_count++] = malloc(bytes);                              \
    last_site = number; /* no two of them are one function */                               \
  }
#define EACH(what) \
  EACH_8(what, 0)  \
  EACH_8(what, 1)  \
  EACH_8(what, 2) EACH_8(what, 3) EACH_8(what, 4) EACH_8(what, 5) EACH_8(what, 6) EACH_8(what, 7)
#define EACH_8(what, high)                                                             \
  what(0##high##0) what(0##high##1) what(0##high##2) what(0##high##3) what(0##high##4) \
      what(0##high##5) what(0##high##6) what(0##high##7)
EACH(MAKE)

#define NAME(number) make_##number,
static void (*const sites[SITES])(size_t, size_t) = {EACH(NAME)};
extern const char __stop_site_code[];

static void make_all(char *line) {
  char *next = line + strlen("round ");
  size_t bytes = strtoul(next, &next, 10);
  for (unsigned site = 0; site < SITES; site++) {
    size_t times = strtoul(next, &next, 10);
    if (kept_count + times > KEPT_MAX) abort();
    sites[site](bytes, times);
  }
}

int main(void) {
  static char line[4096];
  for (unsigned site = 0; site < SITES; site++) printf("%p ", (void *)sites[site]);
  printf("%p\n", (const void *)__stop_site_code);
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) && strncmp(line, "end", 3) != 0) {
    if (strncmp(line, "round", 5) == 0) make_all(line);
    while (strncmp(line, "give", 4) == 0 && kept_count) free(kept[--kept_count]);
    puts("done");
    fflush(stdout);
  }
  return 0;
}
