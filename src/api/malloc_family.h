/* malloc_family.h: the malloc family under internal names; the exported ones (hak_*, the C
 * library's, C++'s) are thin lists over it. */
#ifndef HAK_API_MALLOC_FAMILY_H
#define HAK_API_MALLOC_FAMILY_H

#include "heap/fast_path.h"

/* Each as the function of the C library that its name ends in; `site` is the caller's. */
#define FAMILY(residence, result, name, arguments, ...) \
  result family_##name(__VA_ARGS__, uint32_t site);
#include "api/malloc_family.def"
void *family_calloc(size_t count, size_t size, uint32_t site);
void *family_aligned_calloc(size_t alignment, size_t bytes, uint32_t site);
/* A block, or NULL, zeroed to its end: a block that grows later, and is then zeroed beyond its old
 * usable size, is zero throughout. */
void *family_zeroed(void *block, const struct allocation *allocation);
size_t family_usable_size(const void *block);
void *family_expand(void *block, size_t size); /* as hak_expand */
void *family_malloc_site(size_t size, uint32_t site);

/* The functions of hakmem.h that the layer above calls: under their exported names each would be
 * looked up in every process. */
size_t family_purge(bool force);
void family_thread_idle(void);
struct hak_heap *family_heap_new(const char *name);
bool family_move(bool is_moving);
bool family_heap_use(struct hak_heap *heap, struct hak_heap **before);
bool family_heap_free_all(struct hak_heap *heap);
bool family_heap_destroy(struct hak_heap *heap);

/* Sets errno; NULL, or false. */
COLD void *fail_with(int error);

/* The caller of the exported function that uses this. */
#define SITE() site_of_caller(CALLER_ADDRESS())
#define WITH_SITE(...) __VA_ARGS__, SITE()

#endif
