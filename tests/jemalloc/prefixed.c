/* The archives whose names have a prefix: hakmem's blocks by those, the C library's by malloc. */
#include "api/check.h"

#ifdef RUSTS
#define JE(name) _rjem_##name
void *JE(malloc)(size_t size);
void JE(free)(void *block);
void *JE(mallocx)(size_t size, int flags);
void JE(sdallocx)(void *block, size_t size, int flags);
int JE(mallctl)(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
const char *JE(malloc_conf) = "narenas:5";
enum { MALLOCX_ZERO = 0x40 };
#else
#include <jemalloc/jemalloc.h>
#if !defined(JEMALLOC_FRAG_HINT) || !defined(VALKEY_VENDORED_JEMALLOC)
#error "redis or valkey would not defragment"
#endif
#define JE(name) je_##name
const char *JE(malloc_conf) = "narenas:5";
#endif

#include "hakmem/hakmem.h"

void JE(free_sized)(void *block, size_t size);
void JE(free_aligned_sized)(void *block, size_t alignment, size_t size);

int main(void) {
  unsigned arenas;
  size_t bytes = sizeof arenas;
  char *ours = MUST(JE(malloc)(100)), *theirs = MUST(malloc(100));
  CHECK(hak_owns(ours) && !hak_owns(theirs));
  char *zeroed = MUST(JE(mallocx)(5000, MALLOCX_ZERO));
  CHECK(!zeroed[0] && !zeroed[4999]);
  JE(sdallocx)(zeroed, 5000, 0);
  JE(free)(ours);
  JE(free_sized)(MUST(JE(malloc)(100)), 100);
  JE(free_aligned_sized)(MUST(JE(malloc)(100)), 8, 100);
  free(theirs);
  CHECK(JE(mallctl)("opt.narenas", &arenas, &bytes, NULL, 0) == 0 && arenas == 5);
  return 0;
}
