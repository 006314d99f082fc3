#include "api/access.h"

#include "heap/object.h"

EXPORT void hak_report_access(const struct hak_access *access) {
  struct object object = {0};
  uintptr_t address = (uintptr_t)access->pointer;
  enum object_kind kind = object_find(address, false, &object);
  if (kind == OBJECT_UNKNOWN) return;
  size_t offset = address - object.base, left = object.bytes > offset ? object.bytes - offset : 0;
  if (kind == OBJECT_LIVE && left >= access->bytes) return;
  const char *verb = access->is_write ? "writes" : "reads";
  struct misuse misuse = {.kind = access->is_write ? "overflow in" : "over-read in",
                          .verb = access->function,
                          .address = address,
                          .caller = access->caller};
  if (kind == OBJECT_NONE && !object.base) {
    misuse.kind = "invalid access in";
    report_misuse(&misuse, "%s %zu bytes, no block lives there", verb, access->bytes);
    return;
  }
  struct block_description block = object_describe(&object);
  misuse.block = &block;
  if (kind == OBJECT_NONE) {
    misuse.kind = "use after free in";
    report_misuse(&misuse, "%s %zu bytes, the block of %zu bytes at %#zx is free", verb,
                  access->bytes, block.block_bytes, block.base);
  } else {
    report_misuse(&misuse, "%s %zu bytes, the block of %zu bytes at %#zx has %zu left", verb,
                  access->bytes, block.block_bytes, block.base, left);
  }
}
