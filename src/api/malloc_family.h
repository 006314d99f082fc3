/* malloc_family.h: what the malloc family does, under names of its own; the exported ones (hak_*, the C
 * library's, C++'s) are thin lists over it. */
#ifndef HAK_API_MALLOC_FAMILY_H
#define HAK_API_MALLOC_FAMILY_H

#include "heap/fast_path.h"

/* Each as the function of the C library that its name ends in; `site` is the caller's. */
void *family_calloc(size_t count, size_t size, uint32_t site);
void *family_realloc(void *block, size_t size, uint32_t site);
void *family_reallocarray(void *block, size_t count, size_t size, uint32_t site);
void *family_aligned_alloc(size_t alignment, size_t size, uint32_t site);
int family_posix_memalign(void **out, size_t alignment, size_t size, uint32_t site);
void *family_memalign(size_t alignment, size_t size, uint32_t site);
void *family_valloc(size_t size, uint32_t site);
void *family_pvalloc(size_t size, uint32_t site);
size_t family_usable_size(const void *block);
void *family_malloc_site(size_t size, uint32_t site);

/* The caller of the exported function that uses this. */
#define SITE() site_of_caller(CALLER_ADDRESS())

#endif
