/* os_linux_symbols.c: the contract of os.h on Linux, where it is about code: call stacks, symbols,
 * the C library's malloc. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "base/scan.h"
#include "os/os.h"
#include "os/os_linux.h"

/* Provided by the linker for each shared object and each program. */
extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

/* Provided where the archive is linked: all its code (cmake/whole.ld). */
extern const char __start_hakmem_text[] WEAK HIDDEN, __stop_hakmem_text[] WEAK HIDDEN;

bool os_is_in_library(uintptr_t instruction) {
  bool is_archive = __start_hakmem_text != NULL;
  uintptr_t begin = (uintptr_t)(is_archive ? __start_hakmem_text : __ehdr_start);
  uintptr_t end = (uintptr_t)(is_archive ? __stop_hakmem_text : etext);
  return (is_archive || !os_is_in_program()) && instruction >= begin && instruction < end;
}

/* Weak: a fully static program has none. */
extern int dladdr(const void *address, Dl_info *info) WEAK;

void os_find_place(uintptr_t instruction, struct os_place *place) {
  Dl_info info;
  *place = (struct os_place){0};
  if (!&dladdr || !dladdr((const void *)instruction, &info)) return;
  *place = (struct os_place){.module = info.dli_fname,
                             .module_base = (uintptr_t)info.dli_fbase,
                             .symbol = info.dli_sname,
                             .symbol_base = (uintptr_t)info.dli_saddr};
}

/* Weak: a fully static program has no dynamic linker, and no other malloc either. */
extern void *dlsym(void *restrict handle, const char *restrict name) WEAK;

RESIDENT void *os_next_symbol(const char *name) {
  KEEP_ERRNO();
  return &dlsym ? dlsym(RTLD_NEXT, name) : NULL;
}

bool os_symbol_is_ours(const char *name) {
  KEEP_ERRNO();
  if (os_is_in_program()) return true;
  return os_is_in_library((uintptr_t)(&dlsym ? dlsym(RTLD_DEFAULT, name) : NULL));
}

const struct os_libc_malloc *os_libc_malloc(void) {
  static struct os_libc_malloc found;
  static ATOMIC(bool) is_found; /* release after, acquire before: the members */
  if (!load_acquire(&is_found)) {
    struct os_libc_malloc next;
    *(void **)&next.free = os_next_symbol("free");
    *(void **)&next.realloc = os_next_symbol("realloc");
    *(void **)&next.usable_size = os_next_symbol("malloc_usable_size");
    found = next; /* several threads may write the same values */
    store_release(&is_found, true);
  }
  return &found;
}

enum { STAT_FIELD_START_BRK = 47, STAT_FIELD_AFTER_NAME = 3 }; /* proc(5), counted from 1 */

/* The start of the break: a random address above the program's data. */
static uintptr_t break_start(void) {
  char stat[1024];
  if (os_is_confined()) return getauxval(AT_PHDR); /* of the program, which lies below the break */
  os_read_file("/proc/self/stat", stat, sizeof stat);
  const char *at = scan_for_last(stat, ')'); /* the name before it may contain anything */
  if (!at || !at[1]) return UINTPTR_MAX;
  at += 2;
  for (unsigned field = STAT_FIELD_AFTER_NAME; *at && field < STAT_FIELD_START_BRK; at++)
    field += *at == ' ';
  uint64_t start;
  return scan_number(&at, &start) && start ? start : UINTPTR_MAX;
}

bool os_is_in_break(uintptr_t address) {
  return address < (uintptr_t)OS_CALL(SYS_brk, 0) && address >= break_start();
}
