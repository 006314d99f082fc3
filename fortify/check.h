/* check.h: checks that the bytes exist that a function is about to access.
 *
 * Memory outside hakmem's blocks is unknown and never reported: the stack, globals, other
 * allocators' blocks; all memory where libhakmem.so is not loaded. */
#ifndef HAK_FORTIFY_CHECK_H
#define HAK_FORTIFY_CHECK_H

#include "base/bits.h"
#include "base/compiler.h"

/* Weak: NULL until we are relocated, and where libhakmem.so is not loaded. */
extern size_t malloc_object_size_fast(const void *pointer) WEAK;

/* SIZE_MAX when unknown. opaque_pointer: the compiler would warn of a read of uninitialised
 * bytes. */
INLINE size_t bytes_left(const void *pointer) {
  if (UNLIKELY(&malloc_object_size_fast == NULL)) return SIZE_MAX;
  return malloc_object_size_fast(opaque_pointer((void *)(uintptr_t)pointer));
}

/* Reports it; returns when the program is to go on. */
COLD void check_failed(const char *function, const void *pointer, size_t bytes, bool is_write,
                       uintptr_t caller);

/* All of this is inlined into the replaced functions: the caller is theirs. */
INLINE void check_write(const char *function, const void *pointer, size_t bytes) {
  if (UNLIKELY(bytes > bytes_left(pointer)))
    check_failed(function, pointer, bytes, true, CALLER_ADDRESS());
}
INLINE void check_read(const char *function, const void *pointer, size_t bytes) {
  if (UNLIKELY(bytes > bytes_left(pointer)))
    check_failed(function, pointer, bytes, false, CALLER_ADDRESS());
}

/* The C library's report about an object that the compiler knew to be too small. */
extern NORETURN void __chk_fail(void) WEAK;
INLINE void check_room(size_t bytes, size_t room_bytes) {
  if (UNLIKELY(bytes > room_bytes)) __chk_fail();
}

/* A function of the C library, and the form that its callers are compiled to with _FORTIFY_SOURCE,
 * which takes the room that the compiler saw; `value` is what both return, `room` is SIZE_MAX in
 * the first.  The lists of parameters stand in brackets.  Not all headers declare them. */
#define WITH_ROOM_IN(result, name, name_chk, parameters, parameters_chk, value) \
  result name parameters;                                                       \
  EXPORT result name parameters {                                               \
    const size_t room = SIZE_MAX;                                               \
    return value;                                                               \
  }                                                                             \
  result name_chk parameters_chk;                                               \
  EXPORT result name_chk parameters_chk { return value; }
/* Most have it last. */
#define WITH_ROOM(result, name, name_chk, value, ...) \
  WITH_ROOM_IN(result, name, name_chk, (__VA_ARGS__), (__VA_ARGS__, size_t room), value)

/* count * size, or SIZE_MAX when that is too much for any object. */
INLINE size_t bytes_of(size_t count, size_t size) {
  size_t bytes;
  return UNLIKELY(multiply_overflows(count, size, &bytes)) ? SIZE_MAX : bytes;
}

#endif
