/* Preloaded before a jemalloc: appends each name that the program asks for, and the answer's errno,
 * to the file in MALLCTL_LOG. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int note(const char *name, int error) {
  const char *path = getenv("MALLCTL_LOG");
  int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  if (file < 0) return error;
  dprintf(file, "%s %d\n", name, error);
  close(file);
  return error;
}

#define NEXT(name)        \
  __typeof__(&name) next; \
  *(void **)&next = dlsym(RTLD_NEXT, #name)

int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes) {
  NEXT(mallctl);
  return note(name, next(name, old, old_bytes, new, new_bytes));
}

int mallctlnametomib(const char *name, size_t *mib, size_t *length) {
  NEXT(mallctlnametomib);
  return note(name, next(name, mib, length));
}
