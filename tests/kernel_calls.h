/* The calls that libhakmem.so makes of the kernel itself come to one function of it
 * (src/base/system_call.h). A test puts its own there, before the library's constructor or later:
 * it jumps there with the same arguments. SYSTEM_CALL_AT says where it lies in the file
 * (kernel_calls.py). */
#ifndef TESTS_KERNEL_CALLS_H
#define TESTS_KERNEL_CALLS_H

#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Answers as the kernel does: a negated errno for a refusal. */
typedef long kernel_call(long number, long a, long b, long c, long d, long e, long f);

static int find_hakmem(struct dl_phdr_info *info, size_t bytes, void *base) {
  (void)bytes;
  if (strstr(info->dlpi_name, "libhakmem.so") == NULL) return 0;
  *(uintptr_t *)base = info->dlpi_addr;
  return 1;
}

static inline void take_kernel_calls(kernel_call *own) {
#if defined(__x86_64__) /* mov $own, %r11; jmp *%r11 */
  unsigned char jump[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
  memcpy(jump + 2, &own, sizeof own);
#elif defined(__aarch64__) /* ldr x16, .+8; br x16 */
  unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0};
  memcpy(jump + 8, &own, sizeof own);
#else
#error "no jump is known"
#endif
  uintptr_t base = 0, page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  const char *place = getenv("SYSTEM_CALL_AT");
  if (place == NULL || !dl_iterate_phdr(find_hakmem, &base)) abort();
  char *function = (char *)(base + strtoul(place, NULL, 16));
  char *pages = (char *)((uintptr_t)function / page_bytes * page_bytes);
  size_t pages_bytes = (size_t)(function + sizeof jump - pages);
  if (mprotect(pages, pages_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) abort();
  memcpy(function, jump, sizeof jump);
  mprotect(pages, pages_bytes, PROT_READ | PROT_EXEC);
  __builtin___clear_cache(function, function + sizeof jump);
}

#endif
