/* object_size.c: the bytes left in a block; hardened_malloc's names, see
 * include/hakmem/hakmem.h. */
#include "hakmem/hakmem.h"
#include "heap/object.h"
#include "map/window.h"

static size_t bytes_left(uintptr_t address, enum object_kind kind, const struct object *object) {
  if (kind == OBJECT_UNKNOWN) return SIZE_MAX;
  return kind == OBJECT_LIVE ? object->bytes - (address - object->base) : 0;
}

EXPORT size_t malloc_object_size(const void *pointer) {
  struct object object;
  enum object_kind kind = object_find((uintptr_t)pointer, false, &object);
  if (UNLIKELY(kind == OBJECT_NONE && object.base && object.entry & MAP_HARDENED)) {
    struct block_description block = object_describe(&object);
    report_double_free("malloc_object_size", (uintptr_t)pointer, &block);
  }
  return bytes_left((uintptr_t)pointer, kind, &object);
}

EXPORT size_t malloc_object_size_fast(const void *pointer) {
  struct object object;
  if (object_is_ours_at_work()) return SIZE_MAX;
  enum object_kind kind = object_find((uintptr_t)pointer, true, &object);
  return bytes_left((uintptr_t)pointer, kind, &object);
}
