/* access.h: the function that libhakmem-fortify.so calls in libhakmem.so beside
 * malloc_object_size_fast. */
#ifndef HAK_API_ACCESS_H
#define HAK_API_ACCESS_H

#include "base/compiler.h"

/* A function of the C library is about to touch bytes beyond a block. */
struct hak_access {
  const char *function;
  const void *pointer;
  size_t bytes; /* from `pointer` on */
  bool is_write;
  uintptr_t caller; /* of the function */
};

/* Reports it as a misuse; returns if the program is to go on (HAKMEM_ON_MISUSE), or if the bytes
 * exist after all because another thread has been changing the block. */
void hak_report_access(const struct hak_access *access);

#endif
