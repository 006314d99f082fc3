/* os_linux_deepbind.c: the contract of os.h on Linux: libraries that look for functions in their
 * own libraries first (RTLD_DEEPBIND), and so in the C library before hakmem (docs/decisions/0052).
 *
 * The dynamic linker finds a library's symbols by one address, in the library's dynamic section. It
 * gets a copy of the C library's table, in which some functions lead elsewhere. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/bits.h"
#include "os/os.h"
#include "os/os_linux.h"

#if defined(__GLIBC__) && defined(RTLD_DEEPBIND)

bool os_binds_deeply(int flags) { return flags & RTLD_DEEPBIND; }

/* Weak: a fully static program has none. */
extern void *dlopen(const char *file, int flags) WEAK;
extern void *dlsym(void *restrict handle, const char *restrict name) WEAK;
extern int dl_iterate_phdr(int (*body)(struct dl_phdr_info *, size_t, void *), void *argument) WEAK;

enum { NAMES_MAX = 32 };

struct change {
  const os_name *names;
  uintptr_t targets[NAMES_MAX]; /* 0: stays */
  size_t count;
  uintptr_t in_libc; /* an address of the C library's code */
};

static bool has_address(const struct dl_phdr_info *info, uintptr_t address) {
  for (size_t index = 0; index < info->dlpi_phnum; index++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[index];
    bool is_there = address - info->dlpi_addr - header->p_vaddr < header->p_memsz;
    if (header->p_type == PT_LOAD && is_there) return true;
  }
  return false;
}

static const ElfW(Phdr) * header_of(const struct dl_phdr_info *info, uint32_t type) {
  for (size_t index = 0; index < info->dlpi_phnum; index++)
    if (info->dlpi_phdr[index].p_type == type) return &info->dlpi_phdr[index];
  return NULL;
}

/* Writes the word into pages that the dynamic linker has made read-only once it was ready. */
static void write_word(const struct dl_phdr_info *info, ElfW(Addr) * word, ElfW(Addr) value) {
  size_t page_bytes = os_page_bytes();
  const ElfW(Phdr) *relro = header_of(info, PT_GNU_RELRO);
  uintptr_t page = round_down((uintptr_t)word, page_bytes);
  uintptr_t end =
      relro ? round_down(info->dlpi_addr + relro->p_vaddr + relro->p_memsz, page_bytes) : 0;
  void *pages = (void *)page; /* NOLINT: made from an address */
  if (OS_CALL(SYS_mprotect, pages, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  *(volatile ElfW(Addr) *)word =
      value; /* one store: a look-up finds the old table or the new one */
  if (page < end) OS_CALL(SYS_mprotect, pages, page_bytes, PROT_READ);
}

static void lead_elsewhere(const struct change *change, const struct os_symbols *symbols,
                           ElfW(Sym) * copy) {
  for (size_t index = 0; index < symbols->count; index++) {
    if (copy[index].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(copy[index].st_info) != STT_FUNC)
      continue;
    for (size_t which = 0; which < change->count; which++)
      if (change->targets[which] && os_is_named(symbols, index, change->names[which]))
        copy[index].st_value = change->targets[which] - symbols->bias;
  }
}

/* Called one at a time, as the dynamic linker holds its lock. */
static int change_module(struct dl_phdr_info *info, size_t bytes, void *argument) {
  const struct change *change = argument;
  const ElfW(Phdr) *dynamic = header_of(info, PT_DYNAMIC);
  struct os_symbols symbols;
  (void)bytes;
  if (!dynamic || !has_address(info, change->in_libc)) return 0;
  bool is_placed = dynamic->p_flags & PF_W;
  if (!os_read_symbols(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, is_placed, &symbols))
    return 1;
  size_t table_bytes = symbols.count * sizeof(ElfW(Sym));
  ElfW(Sym) *copy =
      mmap(NULL, table_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return 1;
  memcpy(copy, symbols.table, table_bytes);
  lead_elsewhere(change, &symbols, copy);
  OS_CALL(SYS_mprotect, copy, table_bytes, PROT_READ);
  ElfW(Dyn) *entry = (void *)(info->dlpi_addr + dynamic->p_vaddr); /* NOLINT: an address */
  while (entry->d_tag != DT_SYMTAB) entry++;
  write_word(info, &entry->d_un.d_ptr, (uintptr_t)copy - (is_placed ? 0 : info->dlpi_addr));
  return 1;
}

void os_replace_in_libc(const os_name *names, size_t count) {
  static ATOMIC(bool) is_done; /* relaxed: a second copy does no harm */
  KEEP_ERRNO();
  if (load_relaxed(&is_done) || !&dlopen || !&dlsym || !&dl_iterate_phdr) return;
  os_libc_malloc(); /* the C library's own: found no more afterwards */
  struct change change = {.names = names, .count = count};
  void *program = dlopen(NULL, RTLD_LAZY);
  if (!program) return;
  change.in_libc = (uintptr_t)dlsym(program, "gnu_get_libc_version");
  for (size_t which = 0; which < count; which++)
    change.targets[which] = (uintptr_t)dlsym(program, names[which]);
  dl_iterate_phdr(change_module, &change);
  store_relaxed(&is_done, true);
}

#else

bool os_binds_deeply(int flags) {
  (void)flags;
  return false;
}

void os_replace_in_libc(const os_name *names, size_t count) { (void)names, (void)count; }

#endif
