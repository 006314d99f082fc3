/* Asks for each name given, by all three calls, and prints a line: the bytes that it reads and
 * writes, or -errno: "NAME READ WRITTEN".  A value that was read is written back, else a 0; calls
 * without a value have an effect only where they can neither read nor write. */
#include "jemalloc/mallctl.h"

static char value[8];

static int call(const char *name, bool by_mib, void *old, size_t *old_bytes, void *new,
                size_t new_bytes) {
  size_t mib[COMPONENTS], length = COMPONENTS;
  if (!by_mib) return mallctl(name, old, old_bytes, new, new_bytes);
  int error = mallctlnametomib(name, mib, &length);
  return error ? error : mallctlbymib(mib, length, old, old_bytes, new, new_bytes);
}

/* The bytes with which it works; less than 0: an errno. */
static int try(const char *name, bool by_mib, bool writes) {
  int error = 0;
  if (!writes) memset(value, 0, sizeof value);
  for (size_t bytes = 1; bytes <= sizeof value; bytes *= 2) {
    size_t room = bytes;
    errno = CHECK_ERRNO_MARK;
    error = writes ? call(name, by_mib, NULL, NULL, value, bytes)
                   : call(name, by_mib, value, &room, NULL, 0);
#ifndef SETS_ERRNO
    CHECK(errno == CHECK_ERRNO_MARK);
#endif
    CHECK(error || room == bytes);
    if (error != EINVAL) return error ? -error : (int)bytes;
  }
  return -error;
}

int main(int argc, char **argv) {
  for (int at = 1; at < argc; at++) {
    char *name = argv[at];
    int read = try(name, false, false), written = try(name, false, true);
    CHECK_MSG(try(name, true, false) == read, "%s", name);
    CHECK_MSG(try(name, true, true) == written, "%s", name);
    if (read == -EPERM && written == -EPERM) ACT(name);
    printf("%s %d %d\n", name, read, written);
  }
  return 0;
}
