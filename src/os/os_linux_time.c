/* os_linux_time.c: the contract of os.h on Linux: clocks, and the processor that a thread runs
 * on. Both by the functions that the kernel maps into each process (the vDSO), else by a system
 * call. The C library's functions for this are often replaced: by tools that show a program
 * another time. */
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include "os/os.h"
#include "os/os_linux.h"

RESIDENT static bool find_symbols(struct os_symbols *symbols) {
  const char *own = (const char *)getauxval(AT_SYSINFO_EHDR); /* NOLINT: an address */
  if (!own) return false;
  const ElfW(Ehdr) *header = (const void *)own;
  const ElfW(Phdr) *headers = (const void *)(own + header->e_phoff);
  for (size_t index = 0; index < header->e_phnum; index++)
    if (headers[index].p_type == PT_LOAD) {
      uintptr_t bias = (uintptr_t)own + headers[index].p_offset - headers[index].p_vaddr;
      return os_read_symbols(headers, header->e_phnum, bias, false, symbols);
    }
  return false;
}

/* The address of one of its functions, or 0. */
RESIDENT static uintptr_t find_function(const char *name) {
  struct os_symbols symbols;
  if (!find_symbols(&symbols)) return 0;
  const ElfW(Sym) *table = symbols.table;
  for (size_t index = 0; index < symbols.count; index++)
    if (table[index].st_shndx != SHN_UNDEF && os_is_named(&symbols, index, name))
      return symbols.bias + table[index].st_value;
  return 0;
}

/* Looked for once; 0 when there is none. */
RESIDENT static uintptr_t known_function(ATOMIC(uintptr_t) *known, const char *name) {
  enum { NOT_LOOKED_FOR, NONE };
  uintptr_t found = load_relaxed(known); /* relaxed: any thread finds the same */
  if (UNLIKELY(found == NOT_LOOKED_FOR)) {
    found = find_function(name);
    store_relaxed(known, found ? found : NONE);
  }
  return found == NONE ? 0 : found;
}

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

RESIDENT uint64_t os_clock_ns(int clock) {
  static ATOMIC(uintptr_t) known_clock;
  struct timespec time = {0};
  int (*read_clock)(clockid_t, struct timespec *);
  read_clock =
      (int (*)(clockid_t, struct timespec *))known_function(&known_clock, VDSO_CLOCK_GETTIME);
  if (!read_clock || read_clock(clock, &time) != 0)
    system_call(SYS_clock_gettime, clock, (long)&time, 0, 0, 0, 0);
  return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

RESIDENT uint64_t os_now_ns(void) { return os_clock_ns(CLOCK_MONOTONIC); }

RESIDENT uint64_t os_now_coarse_ms(void) { return os_clock_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_MS; }

uint64_t os_processor_ms(void) {
  return os_is_confined() ? os_now_coarse_ms() : os_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_MS;
}

uint64_t os_thread_ns(void) {
  return os_clock_ns(os_is_confined() ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

unsigned os_processor(void) {
  static ATOMIC(uintptr_t) known_processor;
  unsigned processor = 0;
  if (os_is_confined()) return 0;
  int (*read_processor)(unsigned *, unsigned *, void *);
  read_processor =
      (int (*)(unsigned *, unsigned *, void *))known_function(&known_processor, VDSO_GETCPU);
  if (!read_processor || read_processor(&processor, NULL, NULL) != 0)
    system_call(SYS_getcpu, (long)&processor, 0, 0, 0, 0, 0);
  return processor;
}
