/* object_size.c: how many bytes are left of a block; hardened_malloc's names, see include/hakmem/hakmem.h. */
#include "hakmem/hakmem.h"
#include "heap/object.h"

static size_t bytes_left(const void *pointer, bool is_hurried) {
  uintptr_t address = (uintptr_t)pointer;
  struct object object;
  switch (object_find(address, is_hurried, &object)) {
    case OBJECT_LIVE: return object.bytes - (address - object.base);
    case OBJECT_NONE:
    case OBJECT_BEHIND: return 0;
    default: return SIZE_MAX;
  }
}

EXPORT size_t malloc_object_size(const void *pointer) { return bytes_left(pointer, false); }

EXPORT size_t malloc_object_size_fast(const void *pointer) {
  return object_is_ours_at_work() ? SIZE_MAX : bytes_left(pointer, true);
}
