/* ways.h: a program that does one of several things, which its caller names: WAY(name) { … } is one
 * of them. */
#ifndef TESTS_WAYS_H
#define TESTS_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct way {
  const char *name;
  void (*run)(void);
  struct way *next;
} * ways;

#define WAY(which)                                                  \
  static void which(void);                                          \
  __attribute__((constructor)) static void which##_is_a_way(void) { \
    static struct way way = {#which, which, NULL};                  \
    way.next = ways;                                                \
    ways = &way;                                                    \
  }                                                                 \
  static void which(void)

/* False when there is none of that name. */
static bool run_way(const char *name) {
  for (const struct way *way = ways; way; way = way->next)
    if (!strcmp(way->name, name)) return way->run(), true;
  return false;
}

#endif
