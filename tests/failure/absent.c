/* Preloaded beside hakmem, this is a kernel that lacks one call, or one form of a call, all the
 * time: ABSENT names it. What is refused is told by the number at exit, on standard output. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_calls.h"

#define CALL(name) \
  { #name, SYS_##name }
#define FORM(name) \
  { #name, name }

/* Linux 4.14, 5.14, 6.13 */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

static const struct named {
  const char *name;
  long number;
} calls[] = {CALL(membarrier),
             CALL(mincore),
             CALL(getrandom),
             CALL(gettid),
             CALL(openat),
             CALL(pread64),
             CALL(sched_getaffinity),
             CALL(sched_setaffinity),
             CALL(prctl),
             CALL(sched_getscheduler),
             CALL(sched_setscheduler),
             CALL(close_range)},
  advices[] = {FORM(MADV_HUGEPAGE),      FORM(MADV_NOHUGEPAGE),   FORM(MADV_POPULATE_WRITE),
               FORM(MADV_GUARD_INSTALL), FORM(MADV_GUARD_REMOVE), FORM(MADV_WIPEONFORK)};

static atomic_ulong refused;

static bool is_absent(const char *name) {
  const char *wanted = getenv("ABSENT");
  if (wanted == NULL || strcmp(wanted, name) != 0) return false;
  atomic_fetch_add(&refused, 1);
  return true;
}

#define ABSENT(numbers, asked) \
  is_absent(name_of(numbers, sizeof(numbers) / sizeof *(numbers), asked))

static const char *name_of(const struct named *numbers, size_t count, long asked) {
  for (size_t at = 0; at < count; at++)
    if (numbers[at].number == asked) return numbers[at].name;
  return "";
}

static long answer(int error) {
  errno = error;
  return -1;
}

static long take_call(long number, long a, long b, long c, long d, long e, long f) {
  if (ABSENT(calls, number)) return number == SYS_prctl ? -EINVAL : -ENOSYS;
  long result = syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}

__attribute__((constructor)) static void take_calls(void) { take_kernel_calls(take_call); }

/* An emulator that does not empty pages says that it did. */
int madvise(void *at, size_t bytes, int advice) {
  if (advice == MADV_DONTNEED && is_absent("MADV_DONTNEED")) return 0;
  if (ABSENT(advices, advice)) return (int)answer(EINVAL);
  return (int)syscall(SYS_madvise, at, bytes, advice);
}

/* An old kernel takes the flag for nothing: the address is a hint. */
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED_NOREPLACE) != 0 && is_absent("MAP_FIXED_NOREPLACE"))
    flags &= ~MAP_FIXED_NOREPLACE;
  return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

void *mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void *target = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
  va_end(rest);
  if (is_absent("mremap")) return (void *)answer(ENOSYS);
  if ((flags & MREMAP_DONTUNMAP) != 0 && is_absent("MREMAP_DONTUNMAP"))
    return (void *)answer(EINVAL);
  return (void *)syscall(SYS_mremap, at, old_bytes, new_bytes, flags, target);
}

__attribute__((destructor)) static void tell(void) { printf("%lu\n", atomic_load(&refused)); }
