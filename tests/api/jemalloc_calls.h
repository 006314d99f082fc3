/* jemalloc_calls.h: what jemalloc's header declares and hakmem serves
 * (src/api/override_jemalloc.c). */
#ifndef TESTS_API_JEMALLOC_CALLS_H
#define TESTS_API_JEMALLOC_CALLS_H

#include <stddef.h>

void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t xallocx(void *block, size_t size, size_t extra, int flags);
size_t sallocx(const void *block, int flags);
void dallocx(void *block, int flags);
void sdallocx(void *block, size_t size, int flags);
size_t nallocx(size_t size, int flags);

/* Its flags: the alignment's logarithm; zeroed; any thread cache, any arena. */
enum { LG_64 = 6, LG_PAGE = 12, LG_2_MIB = 21, ZERO = 0x40 };
#define NO_CACHE (1 << 8)
#define ARENA(number) (((number) + 1) << 20)

#endif
