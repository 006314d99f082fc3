#include "fortify/check.h"

#include <unistd.h>

#include "api/access.h"
#include "fortify/real.h"

extern void hak_report_access(const struct hak_access *access) WEAK;

void check_failed(const char *function, const void *pointer, size_t bytes, bool is_write,
                  uintptr_t caller) {
  if (!&hak_report_access) return; /* another malloc that knows its blocks' sizes */
  hak_report_access(&(struct hak_access){.function = function,
                                         .pointer = pointer,
                                         .bytes = bytes,
                                         .is_write = is_write,
                                         .caller = caller});
}

RUN_AT_LOAD static void say_when_idle(void) {
  static const char line[] =
      "hakmem: warning: libhakmem-fortify.so checks nothing without libhakmem.so\n";
  if (&hak_report_access) return;
  ssize_t written = REAL(write)(STDERR_FILENO, line, sizeof line - 1);
  (void)written;
}
