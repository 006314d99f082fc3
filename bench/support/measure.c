/* SPDX-License-Identifier: MIT
 *
 * measure.c: see measure.h.
 */
#include "measure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct moment {
  uint64_t clock_ns;
  struct rusage usage;
};

/* Written by one thread while the others wait at a barrier or do not exist yet. */
static struct moment start, stop;
static uint64_t deadline_ns;

static uint64_t clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* hakmem's own counters, when hakmem serves this process. */
static void write_allocator_stats(const char *file_name) {
  static char json[1 << 20];
  char path[4096];
  const char *directory = getenv("BENCH_STATS_DIR");
  size_t (*stats_json)(char *, size_t) = NULL;
  void *symbol = directory == NULL ? NULL : dlsym(RTLD_DEFAULT, "hak_stats_json");
  if (symbol == NULL) {
    return;
  }
  memcpy(&stats_json, &symbol, sizeof symbol); /* ISO C has no cast from object to function */
  snprintf(path, sizeof path, "%s/%s", directory, file_name);
  stats_json(json, sizeof json);
  FILE *out = fopen(path, "w");
  if (out == NULL || fputs(json, out) < 0 || fclose(out) != 0) {
    perror(path);
    exit(1);
  }
}

void measure_start(double seconds) {
  write_allocator_stats("start.json");
  getrusage(RUSAGE_SELF, &start.usage);
  start.clock_ns = clock_now_ns();
  deadline_ns = start.clock_ns + (uint64_t)(seconds * 1e9);
}

bool measure_expired(void) { return clock_now_ns() >= deadline_ns; }

void measure_stop(void) {
  stop.clock_ns = clock_now_ns();
  getrusage(RUSAGE_SELF, &stop.usage);
  write_allocator_stats("stop.json");
}

static double seconds_between(struct timeval from, struct timeval to) {
  return (double)(to.tv_sec - from.tv_sec) + 1e-6 * (double)(to.tv_usec - from.tv_usec);
}

/* VmHWM and not ru_maxrss: the latter also remembers the process that called exec, which here is a
 * Python of 30 MiB. */
static long peak_rss_kib(void) {
  char text[8192];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) {
    return -1;
  }
  text[length] = '\0';
  const char *line = strstr(text, "\nVmHWM:");
  return line == NULL ? -1 : strtol(line + sizeof "\nVmHWM:" - 1, NULL, 10);
}

static const char *file_of(void *(*as_malloc)(size_t), void (*as_free)(void *)) {
  Dl_info info;
  void *address = NULL;
  if (as_malloc != NULL) {
    memcpy(&address, &as_malloc, sizeof address);
  } else {
    memcpy(&address, &as_free, sizeof address);
  }
  if (dladdr(address, &info) == 0 || info.dli_fname == NULL) {
    return "unknown";
  }
  const char *slash = strrchr(info.dli_fname, '/');
  return slash == NULL ? info.dli_fname : slash + 1;
}

void measure_report(const char *program, const struct tally *tally, const char *details, ...) {
  double seconds = 1e-9 * (double)(stop.clock_ns - start.clock_ns);
  double ops = (double)tally->ops;
  va_list arguments;

  printf("bench=%s ", program);
  va_start(arguments, details);
  vprintf(details, arguments);
  va_end(arguments);
  printf(" ops=%llu seconds=%.6f ns_per_op=%.3f ops_per_s=%.0f", (unsigned long long)tally->ops,
         seconds, seconds * 1e9 / ops, ops / seconds);
  printf(" user_s=%.4f sys_s=%.4f", seconds_between(start.usage.ru_utime, stop.usage.ru_utime),
         seconds_between(start.usage.ru_stime, stop.usage.ru_stime));
  printf(" peak_rss_kib=%ld minor_faults=%ld mallocs=%llu frees=%llu", peak_rss_kib(),
         stop.usage.ru_minflt - start.usage.ru_minflt, (unsigned long long)tally->mallocs,
         (unsigned long long)tally->frees);
  if (getenv("BENCH_PROVE") != NULL) {
    printf(" malloc_from=%s free_from=%s", file_of(malloc, NULL), file_of(NULL, free));
  }
  putchar('\n');
}
