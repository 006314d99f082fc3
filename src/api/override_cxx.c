/* override_cxx.c: C++'s operator new and delete, all replaceable forms, by their mangled names.
 *
 * Written in C, so that the fast paths are the same and the C++ library is not needed: what only it can
 * do is reached in the C++ library of the program.  The new-handler and throwing bad_alloc are weak
 * references; catching what a new-handler throws, for the nothrow forms, is left to the C++ library's
 * own nothrow form, which calls the throwing one, ours, inside a try block. */
#include <stdlib.h>

#include "api/family.h"
#include "os/os.h"

typedef void (*new_handler)(void);

extern new_handler _ZSt15get_new_handlerv(void) WEAK; /* std::get_new_handler() */
extern void _ZSt17__throw_bad_allocv(void) WEAK;      /* std::__throw_bad_alloc() */

static void *allocate_once(size_t size, size_t alignment, uint32_t site) {
  return alignment ? family_aligned_alloc(alignment, size, site) : family_malloc_site(size, site);
}

/* Calls the new-handler until there is memory; NULL when there is no handler (any more). */
COLD static void *retry_with_handler(size_t size, size_t alignment, uint32_t site) {
  for (;;) {
    new_handler handler = &_ZSt15get_new_handlerv ? _ZSt15get_new_handlerv() : NULL;
    if (!handler) return NULL;
    handler();
    void *block = allocate_once(size, alignment, site);
    if (block) return block;
  }
}

COLD static void *retry_or_throw(size_t size, size_t alignment, uint32_t site) {
  void *block = retry_with_handler(size, alignment, site);
  if (block) return block;
  if (&_ZSt17__throw_bad_allocv) _ZSt17__throw_bad_allocv();
  abort();
}

/* The site is operator new's caller: this function is jumped to. */
NOINLINE static void *new_slow(size_t size) {
  uint32_t site = SITE();
  void *block = family_malloc_site(size, site);
  return LIKELY(block != NULL) ? block : retry_or_throw(size, 0, site);
}

/* malloc's fast path; what it pops is never NULL. */
INLINE void *new_or_throw(size_t size) {
  if (UNLIKELY(size > TINY_MAX_BYTES)) return new_slow(size);
  return magazine_pop_or(&heap_of_thread->magazines[tiny_class_of_size(size)], size, new_slow);
}

/* A fully static program cannot reach that form: there a throwing handler's exception passes. */
COLD static void *retry_or_null(size_t size, const void *nothrow, const char *form) {
  void *(*next_form)(size_t, const void *);
  *(void **)&next_form = os_next_symbol(form);
  return next_form ? next_form(size, nothrow) : retry_with_handler(size, 0, 0);
}

COLD static void *retry_aligned_or_null(size_t size, size_t alignment, const void *nothrow,
                                        const char *form) {
  void *(*next_form)(size_t, size_t, const void *);
  *(void **)&next_form = os_next_symbol(form);
  return next_form ? next_form(size, alignment, nothrow) : retry_with_handler(size, alignment, 0);
}

INLINE void *new_or_null(size_t size, const void *nothrow, const char *form, uint32_t site) {
  void *block = family_malloc_site(size, site);
  return LIKELY(block != NULL) ? block : retry_or_null(size, nothrow, form);
}

INLINE void *new_aligned_or_throw(size_t size, size_t alignment, uint32_t site) {
  void *block = family_aligned_alloc(alignment, size, site);
  return LIKELY(block != NULL) ? block : retry_or_throw(size, alignment, site);
}

INLINE void *new_aligned_or_null(size_t size, size_t alignment, const void *nothrow,
                                 const char *form, uint32_t site) {
  void *block = family_aligned_alloc(alignment, size, site);
  return LIKELY(block != NULL) ? block : retry_aligned_or_null(size, alignment, nothrow, form);
}

/* Declared here only: no header has the mangled names.  `nothrow` is a reference, handed on. */
#define OPERATOR(result, name, ...) \
  result name(__VA_ARGS__);         \
  EXPORT result name(__VA_ARGS__)

/* operator new, new[]: (size), (size, nothrow), (size, alignment), (size, alignment, nothrow) */
OPERATOR(void *, _Znwm, size_t size) { return new_or_throw(size); }
OPERATOR(void *, _Znam, size_t size) { return new_or_throw(size); }
OPERATOR(void *, _ZnwmRKSt9nothrow_t, size_t size, const void *nothrow) {
  return new_or_null(size, nothrow, __func__, SITE());
}
OPERATOR(void *, _ZnamRKSt9nothrow_t, size_t size, const void *nothrow) {
  return new_or_null(size, nothrow, __func__, SITE());
}
OPERATOR(void *, _ZnwmSt11align_val_t, size_t size, size_t alignment) {
  return new_aligned_or_throw(size, alignment, SITE());
}
OPERATOR(void *, _ZnamSt11align_val_t, size_t size, size_t alignment) {
  return new_aligned_or_throw(size, alignment, SITE());
}
OPERATOR(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, size_t size, size_t alignment,
         const void *nothrow) {
  return new_aligned_or_null(size, alignment, nothrow, __func__, SITE());
}
OPERATOR(void *, _ZnamSt11align_val_tRKSt9nothrow_t, size_t size, size_t alignment,
         const void *nothrow) {
  return new_aligned_or_null(size, alignment, nothrow, __func__, SITE());
}

/* operator delete, delete[]: with a size it is checked, alignment and nothrow say nothing that the owner
 * map does not. */
OPERATOR(void, _ZdlPv, void *block) { heap_free(block); }
#define DELETE_ALIAS(name, ...) void name(__VA_ARGS__) EXPORT_ALIAS_OF(_ZdlPv)
DELETE_ALIAS(_ZdaPv, void *);
DELETE_ALIAS(_ZdlPvRKSt9nothrow_t, void *);
DELETE_ALIAS(_ZdaPvRKSt9nothrow_t, void *);
DELETE_ALIAS(_ZdlPvSt11align_val_t, void *);
DELETE_ALIAS(_ZdaPvSt11align_val_t, void *);
DELETE_ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, void *);
DELETE_ALIAS(_ZdaPvSt11align_val_tRKSt9nothrow_t, void *);

OPERATOR(void, _ZdlPvm, void *block, size_t size) { heap_free_sized(block, size); }
void _ZdaPvm(void *block, size_t size) EXPORT_ALIAS_OF(_ZdlPvm);
OPERATOR(void, _ZdlPvmSt11align_val_t, void *block, size_t size, size_t alignment) {
  heap_free_sized_loosely(block, size, alignment);
}
void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t alignment)
    EXPORT_ALIAS_OF(_ZdlPvmSt11align_val_t);
