/* Preloaded beside hakmem, this refuses calls that hakmem makes of the kernel, itself or by the C
 * library, as a kernel may refuse them.  All other calls go through.
 *
 *   FAULT_FIRST, FAULT_LAST   the calls of hakmem that are refused, numbered from 1
 *   FAULT_ONE_IN              of those only one in so many, at random
 *   FAULT_SEED                ... another random choice
 *   FAULT_HALF                1: what is refused has done a part of its work, as kernels may:
 *                             the first half of the pages, or the target of a move is unmapped
 *   FAULT_OLD_MREMAP          1: mremap as before Linux 6.17: a source that spans two mappings
 *                             is refused when the target is unmapped already
 * Once the program calls faults_stop, nothing is refused any more; it returns how many were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_calls.h"

static atomic_ulong calls, refused;
static atomic_bool is_over;

static unsigned long number_from(const char *name, unsigned long otherwise) {
  const char *text = getenv(name);
  return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

unsigned long faults_stop(void) {
  atomic_store(&is_over, true);
  return atomic_load(&refused);
}

static bool is_from_hakmem(const void *caller) {
  static _Atomic(void *) base;
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return false;
  if (atomic_load(&base) == NULL && strstr(info.dli_fname, "libhakmem.so") != NULL)
    atomic_store(&base, info.dli_fbase);
  return info.dli_fbase == atomic_load(&base);
}

static bool is_chosen(unsigned long number, unsigned long one_in) {
  uint64_t mixed = (number + number_from("FAULT_SEED", 0) * 977) * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9ull;
  return one_in < 2 || (mixed >> 33) % one_in == 0;
}

static bool is_next_refused(void) {
  if (atomic_load(&is_over)) return false;
  unsigned long number = atomic_fetch_add(&calls, 1) + 1;
  if (number < number_from("FAULT_FIRST", 1) || number > number_from("FAULT_LAST", 0) ||
      !is_chosen(number, number_from("FAULT_ONE_IN", 1))) {
    return false;
  }
  atomic_fetch_add(&refused, 1);
  return true;
}

static bool is_refused(const void *caller, int error) {
  if (!is_from_hakmem(caller) || !is_next_refused()) return false;
  errno = error;
  return true;
}

#define REFUSED(error) is_refused(__builtin_return_address(0), error)

/* What hakmem asks of the kernel itself; 0: never refused. */
static int refusal_of(long number) {
  switch (number) {
    case SYS_openat:
    case SYS_fcntl: return EMFILE;
    case SYS_read:
    case SYS_pread64:
    case SYS_write: return EIO;
    case SYS_getrandom: return EAGAIN;
    case SYS_prlimit64:
    case SYS_process_vm_readv: return EPERM;
    case SYS_mprotect: return ENOMEM;
    case SYS_sched_getaffinity:
    case SYS_rt_sigaction: return EINVAL;
    default: return 0;
  }
}

static bool does_half(void) { return number_from("FAULT_HALF", 0) != 0; }

/* The first half of the pages; none of a single one, nor unless it is asked for. */
static size_t half_of(size_t bytes) {
  size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  return does_half() ? bytes / 2 / page_bytes * page_bytes : 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (!REFUSED(ENOMEM))
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
  if ((flags & MAP_FIXED) != 0 && half_of(bytes) != 0) syscall(SYS_munmap, at, half_of(bytes));
  errno = ENOMEM;
  return MAP_FAILED;
}

/* A call for pages, with one argument more; refused, it may have been done for the first half of
 * them. */
static int of_pages(int error, bool is_refused, long number, void *at, size_t bytes, int more) {
  if (!is_refused) return (int)syscall(number, at, bytes, more);
  if (half_of(bytes) != 0) syscall(number, at, half_of(bytes), more);
  errno = error;
  return -1;
}

int munmap(void *at, size_t bytes) {
  return of_pages(ENOMEM, REFUSED(ENOMEM), SYS_munmap, at, bytes, 0);
}

int madvise(void *at, size_t bytes, int advice) {
  return of_pages(EINVAL, REFUSED(EINVAL), SYS_madvise, at, bytes, advice);
}

/* By the kernel's own list: does one line hold all of it? */
static bool is_one_mapping(uintptr_t begin, uintptr_t end) {
  char line[512];
  bool is_one = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= begin && end <= to) is_one = true;
  }
  if (maps != NULL) fclose(maps);
  return is_one;
}

void *mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void *target = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
  va_end(rest);
  bool is_old = number_from("FAULT_OLD_MREMAP", 0) != 0 && target != NULL &&
                !is_one_mapping((uintptr_t)at, (uintptr_t)at + old_bytes);
  bool is_lost = REFUSED(ENOMEM);
  if (!is_lost && !is_old)
    return (void *)syscall(SYS_mremap, at, old_bytes, new_bytes, flags, target);
  if (target != NULL && (is_old || does_half())) syscall(SYS_munmap, target, new_bytes);
  errno = is_old ? EFAULT : ENOMEM;
  return MAP_FAILED;
}

static long take_call(long number, long a, long b, long c, long d, long e, long f) {
  int error = refusal_of(number);
  if (error != 0 && is_next_refused()) {
    if (number == SYS_mprotect && half_of((size_t)b) != 0)
      syscall(number, a, half_of((size_t)b), c);
    return -error;
  }
  long answer = syscall(number, a, b, c, d, e, f);
  return answer == -1 ? -errno : answer;
}

__attribute__((constructor)) static void take_calls(void) { take_kernel_calls(take_call); }

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  return REFUSED(EAGAIN) ? EAGAIN : REAL(pthread_create)(thread, attributes, body, argument);
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  return REFUSED(EAGAIN) ? EAGAIN : REAL(pthread_key_create)(key, destructor);
}

int pthread_setspecific(pthread_key_t key, const void *value) {
  return REFUSED(ENOMEM) ? ENOMEM : REAL(pthread_setspecific)(key, value);
}
