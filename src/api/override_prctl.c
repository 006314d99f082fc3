/* override_prctl.c: observes prctl, which announces a filter of system calls, in libhakmem.so only.
 *
 * With the archive the library does not see it: HAKMEM_CONFINED=1 announces it instead
 * (docs/decisions/0026). */
#include <errno.h>
#include <stdarg.h>

#include "api/override_next.h"
#include "base/compiler.h"
#include "os/os.h"

typedef int prctl_function(int, unsigned long, unsigned long, unsigned long, unsigned long);

EXPORT_UNDECLARED(int, prctl, int option, ...) {
  prctl_function *next;
  unsigned long words[4];
  va_list rest;
  va_start(rest, option);
  for (unsigned index = 0; index < 4; index++) words[index] = va_arg(rest, unsigned long);
  va_end(rest);
  os_note_prctl(option);
  *(void **)&next = next_call(NEXT_prctl);
  if (next) return next(option, words[0], words[1], words[2], words[3]);
  errno = ENOSYS;
  return -1;
}
