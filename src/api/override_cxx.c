/* override_cxx.c: C++'s operator new and delete, all replaceable forms, by their mangled names.
 *
 * Written in C, so that the fast paths are the same and the C++ library is not needed: the rest is
 * called in the program's C++ library. The new-handler and throwing bad_alloc are weak references;
 * catching what a new-handler throws, for the nothrow forms, is left to the C++ library's own
 * nothrow form, which calls the throwing one, ours, inside a try block. */
#include <errno.h>
#include <stdlib.h>

#include "api/malloc_family.h"
#include "base/bits.h"
#include "foreign/operators.h"
#include "heap/sized_free.h"
#include "os/os.h"

typedef void (*new_handler)(void);

extern new_handler _ZSt15get_new_handlerv(void) WEAK; /* std::get_new_handler() */
extern void _ZSt17__throw_bad_allocv(void) WEAK;      /* std::__throw_bad_alloc() */

/* An operator's arguments. */
struct request {
  size_t size;
  size_t alignment; /* 0: the default */
  uint32_t site;
  enum maker maker;
};

RESIDENT static void *allocate_once(const struct request *request) {
  size_t alignment = request->alignment ? request->alignment : 1;
  return LIKELY(is_power_of_two(alignment))
             ? heap_aligned(alignment, request->size, request->site, request->maker)
             : fail_with(EINVAL);
}

/* Calls the new-handler until there is memory; NULL when there is no handler (any more). */
COLD static void *retry_with_handler(const struct request *request) {
  for (;;) {
    new_handler handler = &_ZSt15get_new_handlerv ? _ZSt15get_new_handlerv() : NULL;
    if (!handler) return NULL;
    handler();
    void *block = allocate_once(request);
    if (block) return block;
  }
}

COLD static void *retry_or_throw(const struct request *request) {
  void *block = retry_with_handler(request);
  if (block) return block;
  if (&_ZSt17__throw_bad_allocv) _ZSt17__throw_bad_allocv();
  abort();
}

static void *allocate_or_throw(const struct request *request) {
  void *block = allocate_once(request);
  return LIKELY(block != NULL) ? block : retry_or_throw(request);
}

/* The site is the operator's caller: these functions are jumped to. */
NOINLINE static void *new_missed(size_t size) {
  return allocate_or_throw(&(struct request){size, 0, SITE(), MADE_BY_NEW});
}
NOINLINE static void *new_array_missed(size_t size) {
  return allocate_or_throw(&(struct request){size, 0, SITE(), MADE_BY_NEW_ARRAY});
}

/* As heap_malloc_slow.  The place of a Tiny size's magazine is looked up again: larger sizes have
 * none, and a second jump in the operator for those would be there when no profile is on. */
INLINE void *new_slow_or(size_t size, void *(*missed)(size_t)) {
  void *block;
  if (UNLIKELY(size > TINY_MAX_BYTES)) return missed(size);
  size_t place = tiny_place_of_size(size);
  struct magazine *magazine = heap_magazine_at(heap_of_thread, &place);
  return LIKELY(magazine_pops_passed(magazine, &block)) ? block : missed(size);
}
NOINLINE static void *new_slow(size_t size) { return new_slow_or(size, new_missed); }

/* Otherwise the window has bounds for all operators. */
INLINE bool may_be_others(void) { return UNLIKELY(!load_relaxed(&window.deleted_count)); }

/* Our array form calls the program's form for one object, not its array form: where that is
 * replaced, ours is not called. An address found by name may be ours, too: a program that takes the
 * address of an operator has a stub, which is then its address everywhere. */
COLD static void *new_array_diverted(size_t size) {
  void *(*other)(size_t) = operators_of_others()->new_plain;
  return other ? other(size) : new_array_missed(size);
}
NOINLINE static void *new_array_slow(size_t size) {
  return may_be_others() ? new_array_diverted(size) : new_slow_or(size, new_array_missed);
}

/* malloc's fast path; the popped block is never NULL. */
INLINE void *new_below(size_t bound, size_t size, void *(*slow)(size_t)) {
  if (UNLIKELY(size >= bound)) return slow(size);
  void *block;
  size_t place = tiny_place_of_size(size);
  return LIKELY(heap_pops(heap_of_thread, &place, &block)) ? block : slow(size);
}

/* A program's own plain form, or its array form, that serves this request; with an alignment or
 * without. */
struct plain_form {
  void *(*plain)(size_t);
  void *(*aligned)(size_t, size_t);
};
static struct plain_form others_form(const struct request *request) {
  const struct other_operators *others = operators_of_others();
  if (request->maker == MADE_BY_NEW_ARRAY)
    return request->alignment ? (struct plain_form){.aligned = others->new_array_aligned}
                              : (struct plain_form){.plain = others->new_array};
  return request->alignment ? (struct plain_form){.aligned = others->new_aligned}
                            : (struct plain_form){.plain = others->new_plain};
}

/* Without the C++ library's nothrow form, as in a fully static program: an exception passes. */
COLD static void *retry_plainly(const struct request *request) {
  struct plain_form others = others_form(request);
  if (others.plain) return others.plain(request->size);
  return others.aligned ? others.aligned(request->size, request->alignment)
                        : retry_with_handler(request);
}

/* The C++ library's own nothrow forms, [is_aligned][is_array]. */
static ATOMIC(void *) next_nothrow[2][2]; /* relaxed: written while we are loaded */

static void *find_next_nothrow(bool is_aligned, bool is_array) {
  static const char names[2][2][36] = {
      {"_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t"},
      {"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"}};
  return os_next_symbol(names[is_aligned][is_array]);
}

/* Looks up the C++ library's nothrow forms in advance: the dynamic linker's lock is held while a
 * library is loaded, whose initialiser may wait for a thread that calls one. */
COLD static void note_next_nothrow(void) {
  for (unsigned form = 0; form < 4; form++)
    store_relaxed(&next_nothrow[form / 2][form % 2], find_next_nothrow(form / 2, form % 2));
}

RUN_AT_LOAD static void at_load(void) {
  if (UNLIKELY(!operators_are_ours())) note_next_nothrow();
}

COLD static void *retry_or_null(const struct request *request, const void *nothrow) {
  bool is_aligned = request->alignment != 0, is_array = request->maker == MADE_BY_NEW_ARRAY;
  union {
    void *symbol;
    void *(*plain)(size_t, const void *);
    void *(*aligned)(size_t, size_t, const void *);
  } next = {load_relaxed(&next_nothrow[is_aligned][is_array])};
  if (!next.symbol) next.symbol = find_next_nothrow(is_aligned, is_array);
  if (!next.symbol) return retry_plainly(request);
  return is_aligned ? next.aligned(request->size, request->alignment, nothrow)
                    : next.plain(request->size, nothrow);
}

/* Where a program's plain form serves, the C++ library's nothrow form calls that. */
static void *new_or_null(const struct request *request, const void *nothrow) {
  struct plain_form others = others_form(request);
  bool is_others = others.plain || others.aligned;
  void *block = UNLIKELY(is_others) ? NULL : allocate_once(request);
  return LIKELY(block != NULL) ? block : retry_or_null(request, nothrow);
}

/* Declared here only: no header has the mangled names.  `nothrow` is a reference, handed on. */
#define OPERATOR(result, name, ...)     \
  result name(__VA_ARGS__) REPLACEABLE; \
  EXPORT result name(__VA_ARGS__)
/* Calls the program's own plain form where it has one, else ours. */
#define THEIRS_OR(member, arguments, ours)                \
  do {                                                    \
    if (may_be_others() && operators_of_others()->member) \
      operators_of_others()->member arguments;            \
    else                                                  \
      ours;                                               \
  } while (0)
/* hakmem's own, even if the program has one (foreign/operators.h). */
#define OURS(result, name, target, ...) HIDDEN result name(__VA_ARGS__) ALIAS_OF(target)

/* operator new, new[]: (size), (size, nothrow), (size, alignment), (size, alignment, nothrow) */
#define NEW(...) \
  &(struct request) { __VA_ARGS__, SITE(), MADE_BY_NEW }
#define NEW_ARRAY(...) \
  &(struct request) { __VA_ARGS__, SITE(), MADE_BY_NEW_ARRAY }
OPERATOR(RESIDENT void *, _Znwm, size_t size) {
  return new_below(TINY_MAX_BYTES + 1, size, new_slow);
}
OPERATOR(RESIDENT void *, _Znam, size_t size) {
  return new_below(load_relaxed(&window.array_bound), size, new_array_slow);
}
OPERATOR(void *, _ZnwmRKSt9nothrow_t, size_t size, const void *nothrow) {
  return new_or_null(NEW(size, 0), nothrow);
}
OPERATOR(void *, _ZnamRKSt9nothrow_t, size_t size, const void *nothrow) {
  return new_or_null(NEW_ARRAY(size, 0), nothrow);
}
OPERATOR(void *, _ZnwmSt11align_val_t, size_t size, size_t alignment) {
  return allocate_or_throw(NEW(size, alignment));
}
OPERATOR(void *, _ZnamSt11align_val_t, size_t size, size_t alignment) {
  void *(*other)(size_t, size_t) = operators_of_others()->new_aligned;
  return UNLIKELY(other != NULL) ? other(size, alignment)
                                 : allocate_or_throw(NEW_ARRAY(size, alignment));
}
OPERATOR(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, size_t size, size_t alignment,
         const void *nothrow) {
  return new_or_null(NEW(size, alignment | !alignment), nothrow);
}
OPERATOR(void *, _ZnamSt11align_val_tRKSt9nothrow_t, size_t size, size_t alignment,
         const void *nothrow) {
  return new_or_null(NEW_ARRAY(size, alignment | !alignment), nothrow);
}
OURS(void *, hak_new_plain, _Znwm, size_t);
OURS(void *, hak_new_array, _Znam, size_t);
OURS(void *, hak_new_aligned, _ZnwmSt11align_val_t, size_t, size_t);
OURS(void *, hak_new_array_aligned, _ZnamSt11align_val_t, size_t, size_t);

NOINLINE static void delete_array_slow(void *block) {
  THEIRS_OR(delete_plain, (block), heap_delete_array_slow(block));
}

/* operator delete, delete[]: with a size it is checked, alignment and nothrow add nothing to the
 * owner map. */
OPERATOR(RESIDENT void, _ZdlPv, void *block) { heap_free_or(block, heap_delete_slow); }
OPERATOR(RESIDENT void, _ZdaPv, void *block) {
  heap_free_below(&window.deleted_count, block, delete_array_slow);
}
void _ZdlPvSt11align_val_t(void *block) REPLACEABLE EXPORT_ALIAS_OF(_ZdlPv);
OURS(void, hak_delete_plain, _ZdlPv, void *);
OURS(void, hak_delete_aligned, _ZdlPv, void *);
OURS(void, hak_delete_array, _ZdaPv, void *);

/* The following forms call a program's plain forms where there are any. */
OPERATOR(void, _ZdaPvSt11align_val_t, void *block, size_t alignment) {
  THEIRS_OR(delete_aligned, (block, alignment), heap_free_or(block, heap_delete_array_slow));
}
OURS(void, hak_delete_array_aligned, _ZdaPvSt11align_val_t, void *, size_t);
OPERATOR(void, _ZdlPvRKSt9nothrow_t, void *block, const void *nothrow) {
  (void)nothrow;
  THEIRS_OR(delete_plain, (block), hak_delete_plain(block));
}
OPERATOR(void, _ZdaPvRKSt9nothrow_t, void *block, const void *nothrow) {
  (void)nothrow;
  THEIRS_OR(delete_array, (block), hak_delete_array(block));
}
OPERATOR(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, void *block, size_t alignment,
         const void *nothrow) {
  (void)nothrow;
  THEIRS_OR(delete_aligned, (block, alignment), hak_delete_plain(block));
}
OPERATOR(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, void *block, size_t alignment,
         const void *nothrow) {
  (void)nothrow;
  THEIRS_OR(delete_array_aligned, (block, alignment), hak_delete_array_aligned(block, alignment));
}

NOINLINE static void delete_sized_slow(void *block, size_t size) {
  THEIRS_OR(delete_plain, (block), heap_delete_sized_slow(block, size));
}
NOINLINE static void delete_array_sized_slow(void *block, size_t size) {
  THEIRS_OR(delete_array, (block), heap_delete_array_sized_slow(block, size));
}
OPERATOR(RESIDENT void, _ZdlPvm, void *block, size_t size) {
  heap_free_sized_below(&window.deleted_count, block, size, delete_sized_slow);
}
OPERATOR(RESIDENT void, _ZdaPvm, void *block, size_t size) {
  heap_free_sized_below(&window.deleted_count, block, size, delete_array_sized_slow);
}
OPERATOR(void, _ZdlPvmSt11align_val_t, void *block, size_t size, size_t alignment) {
  THEIRS_OR(delete_aligned, (block, alignment),
            heap_free_sized_loosely(block, size, alignment, MADE_BY_NEW));
}
OPERATOR(void, _ZdaPvmSt11align_val_t, void *block, size_t size, size_t alignment) {
  THEIRS_OR(delete_array_aligned, (block, alignment),
            heap_free_sized_loosely(block, size, alignment, MADE_BY_NEW_ARRAY));
}
