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
  double user_s, sys_s;
  long minor_faults;
};

/* Written by one thread while the others wait at a barrier or do not exist yet. */
static struct moment start, stop;
static uint64_t deadline_ns;
static long stop_rss_kib;

static uint64_t clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double in_seconds(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void add_usage(struct moment *moment, int of_whom) {
  struct rusage usage;
  getrusage(of_whom, &usage);
  moment->user_s += in_seconds(usage.ru_utime);
  moment->sys_s += in_seconds(usage.ru_stime);
  moment->minor_faults += usage.ru_minflt;
}

/* All but the clock, which is read last at the start and first at the stop. */
static struct moment usage_now(void) {
  struct moment moment = {0};
  add_usage(&moment, RUSAGE_SELF);
  add_usage(&moment, RUSAGE_CHILDREN);
  return moment;
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
  start = usage_now();
  start.clock_ns = clock_now_ns();
  deadline_ns = start.clock_ns + (uint64_t)(seconds * 1e9);
}

bool measure_expired(void) { return clock_now_ns() >= deadline_ns; }

void measure_stop(void) {
  uint64_t now_ns = clock_now_ns();
  stop = usage_now();
  stop.clock_ns = now_ns;
  stop_rss_kib = measure_status_kib("VmRSS");
  write_allocator_stats("stop.json");
}

long measure_status_kib(const char *field) {
  char text[8192], line_start[32];
  int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) {
    return -1;
  }
  text[length] = '\0';
  snprintf(line_start, sizeof line_start, "\n%s:", field);
  const char *line = strstr(text, line_start);
  return line == NULL ? -1 : strtol(line + strlen(line_start), NULL, 10);
}

long measure_stop_rss_kib(void) { return stop_rss_kib; }

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
  double ns = tally->busy_ns != 0 ? (double)tally->busy_ns : seconds * 1e9;
  va_list arguments;

  printf("bench=%s ", program);
  va_start(arguments, details);
  vprintf(details, arguments);
  va_end(arguments);
  printf(" ops=%llu seconds=%.6f ns_per_op=%.3f ops_per_s=%.0f", (unsigned long long)tally->ops,
         seconds, ns / ops, ops / seconds);
  printf(" user_s=%.4f sys_s=%.4f", stop.user_s - start.user_s, stop.sys_s - start.sys_s);
  /* VmHWM and not ru_maxrss: the latter also remembers the process that called exec, which here is
   * a Python of 30 MiB. */
  printf(" peak_rss_kib=%ld rss_end_kib=%ld minor_faults=%ld mallocs=%llu frees=%llu",
         measure_status_kib("VmHWM"), stop_rss_kib, stop.minor_faults - start.minor_faults,
         (unsigned long long)tally->mallocs, (unsigned long long)tally->frees);
  if (getenv("BENCH_PROVE") != NULL) {
    printf(" malloc_from=%s free_from=%s", file_of(malloc, NULL), file_of(NULL, free));
  }
  putchar('\n');
}
