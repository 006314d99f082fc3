/* entry_names.h: entries that no header of C declares: what glibc calls malloc and its family by,
 * and C++'s operators. */
#ifndef TESTS_API_ENTRY_NAMES_H
#define TESTS_API_ENTRY_NAMES_H

#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
int __posix_memalign(void **out, size_t alignment, size_t size);

/* operator new and delete, by the names that C++ gives them. */
void *_Znwm(size_t size);
void *_Znam(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow);
void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow);
void *_ZnwmSt11align_val_t(size_t size, size_t alignment);
void *_ZnamSt11align_val_t(size_t size, size_t alignment);
void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *nothrow);
void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *nothrow);
void _ZdlPv(void *block);
void _ZdaPv(void *block);
void _ZdlPvm(void *block, size_t size);
void _ZdaPvm(void *block, size_t size);
void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow);
void _ZdaPvRKSt9nothrow_t(void *block, const void *nothrow);
void _ZdlPvSt11align_val_t(void *block, size_t alignment);
void _ZdaPvSt11align_val_t(void *block, size_t alignment);
void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment);
void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t alignment);
void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *nothrow);
void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment, const void *nothrow);

#endif
