/* override_load.c: wraps the loading of libraries, in libhakmem.so only. A library opened with
 * RTLD_DEEPBIND binds the C library's malloc before ours, and its blocks cross to the program
 * and back: so the C library's names lead to ours before the first one is loaded
 * (docs/decisions/0052). */
#include <stdlib.h>

#ifdef __GLIBC__

#include "api/override_next.h"
#include "base/compiler.h"
#include "heap/fork.h"
#include "os/os.h"

static const os_name replaced[] = {
    "malloc",         "calloc",        "realloc",           "reallocarray",    "free",
    "cfree",          "free_sized",    "aligned_alloc",     "posix_memalign",  "memalign",
    "valloc",         "pvalloc",       "__libc_malloc",     "__libc_calloc",   "__libc_realloc",
    "__libc_free",    "__libc_valloc", "__libc_pvalloc",    "__libc_memalign", "free_aligned_sized",
    "malloc_trim",    "mallinfo",      "mallinfo2",         "mallopt",         "malloc_stats",
    "__libc_mallopt", "malloc_info",   "malloc_usable_size"};

/* The next functions are looked up before. The library may start a thread, or register handlers of
 * a fork, unseen. */
static void note_load(int flags) {
  if (LIKELY(!os_binds_deeply(flags))) return;
  heaps_at_fork();
  os_replace_in_libc(replaced, sizeof replaced / sizeof *replaced);
}

typedef void *open_function(const char *file, int flags);
typedef void *open_in_namespace_function(long space, const char *file, int flags);

/* Both end in a jump: the place of the call says where libraries are looked for, and in which
 * namespace. */
EXPORT_UNDECLARED(ENDS_IN_JUMP void *, dlopen, const char *file, int flags) {
  open_function *next;
  *(void **)&next = next_call(NEXT_dlopen);
  note_load(flags);
  return next ? next(file, flags) : NULL;
}

EXPORT_UNDECLARED(ENDS_IN_JUMP void *, dlmopen, long space, const char *file, int flags) {
  open_in_namespace_function *next;
  *(void **)&next = next_call(NEXT_dlmopen);
  note_load(flags);
  return next ? next(space, file, flags) : NULL;
}

#endif
