/* rss.h: the resident memory of this process, exactly.
 *
 * /proc/self/statm sums per-CPU counters that may lag by megabytes; smaps_rollup walks the page
 * tables.  Read with plain system calls, so that looking allocates nothing. */
#ifndef TESTS_MEMORY_RSS_H
#define TESTS_MEMORY_RSS_H

#include <fcntl.h>
#include <sys/resource.h>

#include "api/check.h"

static inline size_t rss_bytes(void) {
  char text[4096];
  int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  CHECK(length > 0);
  text[length] = '\0';
  const char *line = MUST(strstr(text, "\nRss:"));
  return strtoull(line + strlen("\nRss:"), NULL, 10) * 1024;
}

/* Of pages, so far. */
static inline size_t faults(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return (size_t)usage.ru_minflt;
}

#endif
