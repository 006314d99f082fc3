#include "api/access.h"

#include "heap/object.h"

EXPORT void hak_report_access(const struct hak_access *access) {
  struct object object;
  uintptr_t address = (uintptr_t)access->pointer;
  enum object_kind kind = object_find(address, false, &object);
  if (kind == OBJECT_UNKNOWN) return;
  if (kind == OBJECT_LIVE && object.bytes - (address - object.base) >= access->bytes) return;
  bool has_block = kind != OBJECT_NONE || object.base;
  struct block_description block;
  if (has_block) block = object_describe(&object);
  report_access(&(struct access_fault){.function = access->function,
                                       .address = address,
                                       .bytes = access->bytes,
                                       .is_write = access->is_write,
                                       .caller = access->caller,
                                       .block = has_block ? &block : NULL,
                                       .is_free = kind == OBJECT_NONE});
}
