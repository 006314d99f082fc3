/* override.c: the C library's malloc family, replaced.
 *
 * Every name that glibc exports is here, its internal aliases included, so that no block escapes to
 * the other heap.  malloc and free are the fast paths themselves, not calls of them. */
#include <malloc.h>
#include <stdlib.h>

#include "api/malloc_family.h"
#include "heap/sized_free.h"

FAST_PATH EXPORT void *malloc(size_t size) { return heap_malloc(size); }
FAST_PATH EXPORT void free(void *block) { heap_free(block); }

RESIDENT EXPORT void *calloc(size_t count, size_t size) {
  return family_calloc(count, size, SITE());
}
void *pvalloc(size_t size); /* musl has none */
#define FAMILY(residence, result, name, arguments, ...) \
  residence EXPORT result name(__VA_ARGS__) { return family_##name(WITH_SITE arguments); }
#include "api/malloc_family.def"
EXPORT size_t malloc_usable_size(void *block) { return family_usable_size(block); }

/* C23. */
EXPORT_UNDECLARED(void, free_sized, void *block, size_t size) {
  heap_free_sized_or(block, size, heap_free_sized_slow);
}
EXPORT_UNDECLARED(void, free_aligned_sized, void *block, size_t alignment, size_t size) {
  heap_free_sized_loosely(block, size, alignment, MADE_BY_MALLOC);
}

/* Older than C89, still asked for. */
void cfree(void *block);
EXPORT void cfree(void *block) EXPORT_ALIAS_OF(free);

/* glibc's internal names. */
void *__libc_malloc(size_t size) EXPORT_ALIAS_OF(malloc);
void __libc_free(void *block) EXPORT_ALIAS_OF(free);
void *__libc_calloc(size_t count, size_t size) EXPORT_ALIAS_OF(calloc);
void *__libc_realloc(void *block, size_t size) EXPORT_ALIAS_OF(realloc);
void *__libc_memalign(size_t alignment, size_t size) EXPORT_ALIAS_OF(memalign);
void *__libc_valloc(size_t size) EXPORT_ALIAS_OF(valloc);
void *__libc_pvalloc(size_t size) EXPORT_ALIAS_OF(pvalloc);
int __posix_memalign(void **out, size_t alignment, size_t size) EXPORT_ALIAS_OF(posix_memalign);
