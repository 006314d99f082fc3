/* os_linux_modules.c: the contract of os.h on Linux, for the origin of code and the ends of
 * stacks. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/registers.h"
#include "os/os.h"
#include "os/os_linux.h"

/* Provided by the linker for each shared object and each program. */
extern const char __ehdr_start[] HIDDEN;

/* In a static program the C library calls malloc for the tables of _dl_find_object before they can
 * be used. */
static ATOMIC(bool) is_loaded; /* relaxed: other threads start later */

/* In glibc since 2.35, in static programs only if another part refers to it. It takes no lock. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
extern int _dl_find_object(void *address, struct dl_find_object *found) WEAK;
UNVERSIONED(_dl_find_object);

static bool can_ask_linker(void) {
  if (!&_dl_find_object) return false;
  return load_relaxed(&is_loaded) || getauxval(AT_BASE); /* the kernel has loaded a linker */
}
static bool find_by_linker(uintptr_t instruction, struct os_module *module) {
  struct dl_find_object found;
  if (!can_ask_linker() || _dl_find_object((void *)instruction, &found) != 0) return false;
  uintptr_t header = (uintptr_t)found.dlfo_eh_frame;
  *module = (struct os_module){.begin = (uintptr_t)found.dlfo_map_start,
                               .end = (uintptr_t)found.dlfo_map_end,
                               .unwind_header = header};
  /* For a module with gaps the result is one segment: the tables lie in another. */
  bool is_apart = header && header - module->begin >= module->end - module->begin;
  if (is_apart && _dl_find_object((void *)header, &found) != 0) return false;
  module->tables_begin = (uintptr_t)found.dlfo_map_start;
  module->tables_end = (uintptr_t)found.dlfo_map_end;
  return true;
}
#else
static bool can_ask_linker(void) { return false; }
static bool find_by_linker(uintptr_t instruction, struct os_module *module) {
  (void)instruction, (void)module;
  return false;
}
#endif

bool os_is_in_program(void) {
  return getauxval(AT_PHDR) - (uintptr_t)__ehdr_start < os_page_bytes();
}

static uintptr_t bias_of(const ElfW(Phdr) * headers, size_t count) {
  for (size_t index = 0; index < count; index++)
    if (headers[index].p_type == PT_PHDR) return (uintptr_t)headers - headers[index].p_vaddr;
  return 0; /* linked to a fixed address */
}

static bool describe(const ElfW(Phdr) * headers, size_t count, uintptr_t bias,
                     struct os_module *module) {
  *module = (struct os_module){.begin = UINTPTR_MAX};
  for (size_t index = 0; index < count; index++) {
    uintptr_t begin = bias + headers[index].p_vaddr, end = begin + headers[index].p_memsz;
    if (headers[index].p_type == PT_GNU_EH_FRAME) module->unwind_header = begin;
    if (headers[index].p_type != PT_LOAD) continue;
    if (begin < module->begin) module->begin = begin;
    if (end > module->end) module->end = end;
  }
  module->tables_begin = module->begin;
  module->tables_end = module->end;
  return module->begin < module->end;
}

/* ---- where the linker cannot be asked -------------------------------------------------------- */

enum { NOTED_MAX = 128 };
RARE_DATA static struct os_module noted[NOTED_MAX];
static ATOMIC(unsigned) noted_count;

/* Weak: a fully static program may have none. */
extern int dl_iterate_phdr(int (*body)(struct dl_phdr_info *, size_t, void *), void *argument) WEAK;

static int note_module(struct dl_phdr_info *info, size_t bytes, void *argument) {
  unsigned *count = argument;
  (void)bytes;
  *count += describe(info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr, &noted[*count]);
  return *count == NOTED_MAX;
}

/* musl never unloads a module. */
static bool is_unloading_known(void) {
#ifdef __GLIBC__
  return true;
#else
  return false;
#endif
}

RESIDENT void os_note_modules(bool is_first_load) {
  unsigned count = 0;
  store_relaxed(&is_loaded, true);
  bool all_stay = is_first_load || os_is_in_program() || !is_unloading_known();
  if (can_ask_linker() || !&dl_iterate_phdr || load_relaxed(&noted_count) || !all_stay) return;
  dl_iterate_phdr(note_module, &count);
  store_release(&noted_count, count); /* the notes; pairs with find_noted */
}

static bool covers(const struct os_module *module, uintptr_t instruction) {
  return instruction - module->begin < module->end - module->begin;
}

static bool find_noted(uintptr_t instruction, struct os_module *module) {
  /* acquire: pairs with os_note_modules. */
  unsigned left = load_acquire(&noted_count);
  while (left && !covers(&noted[left - 1], instruction)) left--;
  if (left) *module = noted[left - 1];
  return left;
}

/* The program, whose headers the kernel provides, and this library. */
static bool describe_known(unsigned which, struct os_module *module) {
  const char *own = __ehdr_start;
  const ElfW(Ehdr) *header = (const void *)own;
  const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
  size_t count = headers ? getauxval(AT_PHNUM) : 0;
  if (which)
    return describe((const void *)(own + header->e_phoff), header->e_phnum, (uintptr_t)own, module);
  return describe(headers, count, bias_of(headers, count), module);
}

bool os_find_module(uintptr_t instruction, struct os_module *module) {
  if (find_by_linker(instruction, module) || find_noted(instruction, module)) return true;
  for (unsigned which = 0; which < 2; which++)
    if (describe_known(which, module) && covers(module, instruction)) return true;
  return false;
}

bool os_program_segment(unsigned number, struct os_segment *segment) {
  const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
  size_t count = headers ? getauxval(AT_PHNUM) : 0;
  uintptr_t bias = bias_of(headers, count);
  for (size_t index = 0; index < count; index++) {
    const ElfW(Phdr) *header = &headers[index];
    if (header->p_type != PT_LOAD || number--) continue;
    *segment = (struct os_segment){.begin = bias + header->p_vaddr,
                                   .end = bias + header->p_vaddr + header->p_filesz,
                                   .is_code = header->p_flags & PF_X,
                                   .is_writable = header->p_flags & PF_W};
    return true;
  }
  return false;
}

#ifdef __GLIBC__
bool os_is_after_first_call(uintptr_t instruction) {
  (void)instruction;
  return false;
}
#else
/* The process or the thread ends with that function's result. The instruction is looked up once:
 * there is one of each kind, in the C library, which stays loaded. */
bool os_is_after_first_call(uintptr_t instruction) {
  enum { KINDS = 2 };
  static ATOMIC(uintptr_t) known[KINDS]; /* relaxed: any thread finds the same */
  uintptr_t ends[KINDS] = {(uintptr_t)exit, (uintptr_t)pthread_exit};
  uint8_t code[RESULT_CALL_BYTES];
  for (unsigned kind = 0; kind < KINDS; kind++)
    if (load_relaxed(&known[kind]) == instruction) return true;
  if (!os_read_safely(code, (const void *)instruction, sizeof code)) return false;
  uintptr_t taker = result_goes_to(code, instruction);
  for (unsigned kind = 0; kind < KINDS; kind++) {
    if (taker != ends[kind]) continue;
    store_relaxed(&known[kind], instruction);
    return true;
  }
  return false;
}
#endif

/* The kernel puts the program's name above everything else. */
uintptr_t os_first_stack_end(void) { return getauxval(AT_EXECFN); }
