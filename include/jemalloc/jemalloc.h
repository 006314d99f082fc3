/* SPDX-License-Identifier: MIT
 *
 * jemalloc.h: jemalloc's interface, served by hakmem, under the names that a jemalloc has which was
 * configured with the prefix je_, as the ones that redis and valkey bring along.  For programs that
 * are linked with libhakmem-je.a (docs/guides/JEMALLOC.md).
 *
 * Each function does what jemalloc 5.3's manual says of it; the guide lists the few differences. */
#ifndef JEMALLOC_H_
#define JEMALLOC_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JEMALLOC_VERSION "5.3.0-0-g0000000000000000000000000000000000000000"
#define JEMALLOC_VERSION_MAJOR 5
#define JEMALLOC_VERSION_MINOR 3
#define JEMALLOC_VERSION_BUGFIX 0
#define JEMALLOC_VERSION_NREV 0
#define JEMALLOC_VERSION_GID "0000000000000000000000000000000000000000"

/* Flags of the functions that end in x, to be or-ed: the alignment, or its logarithm; a zeroed
 * block; a thread cache, or none; an arena. */
#define MALLOCX_LG_ALIGN(lg) ((int)(lg))
#define MALLOCX_ALIGN(bytes) ((int)__builtin_ctzll((unsigned long long)(bytes)))
#define MALLOCX_ZERO ((int)0x40)
#define MALLOCX_TCACHE(number) ((int)(((unsigned)(number) + 2u) << 8))
#define MALLOCX_TCACHE_NONE ((int)(1u << 8))
#define MALLOCX_ARENA(number) ((int)(((unsigned)(number) + 1u) << 20))

/* In names of mallctl, instead of an arena's number: all arenas; those that were destroyed. */
#define MALLCTL_ARENAS_ALL 4096
#define MALLCTL_ARENAS_DESTROYED 4097

#ifdef __cplusplus
extern "C" {
#endif

/* Options of the program's own, as in MALLOC_CONF; and where reports go instead of standard
 * error. */
extern const char *je_malloc_conf;
extern void (*je_malloc_message)(void *argument, const char *text);

void *je_malloc(size_t size);
void *je_calloc(size_t count, size_t size);
int je_posix_memalign(void **out, size_t alignment, size_t size);
void *je_aligned_alloc(size_t alignment, size_t size);
void *je_realloc(void *block, size_t size);
void je_free(void *block);
void *je_memalign(size_t alignment, size_t size);
void *je_valloc(size_t size);
size_t je_malloc_usable_size(void *block);

void *je_mallocx(size_t size, int flags);
void *je_rallocx(void *block, size_t size, int flags);
size_t je_xallocx(void *block, size_t size, size_t extra, int flags);
size_t je_sallocx(const void *block, int flags);
void je_dallocx(void *block, int flags);
void je_sdallocx(void *block, size_t size, int flags);
size_t je_nallocx(size_t size, int flags);

/* Return 0, or an errno: ENOENT for a name that does not exist, EINVAL for a value of another
 * size, EPERM for one that cannot be read or written. */
int je_mallctl(const char *name, void *old_value, size_t *old_bytes, void *new_value,
               size_t new_bytes);
int je_mallctlnametomib(const char *name, size_t *mib, size_t *length);
int je_mallctlbymib(const size_t *mib, size_t length, void *old_value, size_t *old_bytes,
                    void *new_value, size_t new_bytes);
/* With it valkey from 8.1 on defragments, by experimental.utilization.batch_query. */
#define VALKEY_VENDORED_JEMALLOC 1
/* An addition of redis' jemalloc: 1 if moving the live block would save memory, else 0.  The new
 * block is one of je_mallocx(bytes, MALLOCX_TCACHE_NONE), and the old one is freed by
 * je_dallocx(block, MALLOCX_TCACHE_NONE). */
#define JEMALLOC_FRAG_HINT
int je_get_defrag_hint(void *block);
void je_malloc_stats_print(void (*write)(void *argument, const char *text), void *argument,
                           const char *options);

#ifdef __cplusplus
}
#endif
#endif
