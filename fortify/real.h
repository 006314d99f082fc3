/* real.h: the C library's own functions, under whose names libhakmem-fortify.so comes first.
 *
 * They are found when the library is loaded, so that neither a signal handler nor a forked child
 * has to ask the dynamic linker.  Some are called before that: by other libraries' constructors, by
 * resolvers of indirect functions while the program is still being put together, by the dynamic
 * linker's own search.  Then they are searched for at the call; and where that is not possible yet
 * either, a loop of our own does the work. */
#ifndef HAK_FORTIFY_REAL_H
#define HAK_FORTIFY_REAL_H

#include "base/atomic.h"
#include "base/compiler.h"

enum real_function {
#define REAL_FUNCTION(name) REAL_##name,
#include "fortify/real.def"
#undef REAL_FUNCTION
  REAL_COUNT
};

extern ATOMIC(void *) real_found[REAL_COUNT];

/* Searches; `loop` does the work until then, or always where the C library has no such function. */
COLD void *real_find(enum real_function which, const char *name, void *loop);

INLINE void *real_or(enum real_function which, const char *name, void *loop) {
  void *found = load_relaxed(&real_found[which]);
  return LIKELY(found != NULL) ? found : real_find(which, name, loop);
}

/* A function's address as data and back: C has no cast for that. */
#define REAL_OR(name, loop_function)        \
  (((union {                                \
     void *found;                           \
     __typeof__(name) *function;            \
   }){real_or(REAL_##name, #name,           \
              ((union {                     \
                __typeof__(name) *function; \
                void *found;                \
              }){loop_function})            \
                  .found)})                 \
       .function)
/* NULL where it is not available. */
#define REAL(name) REAL_OR(name, NULL)
/* The value of a function that calls it. */
#define FORWARD(failure, name, ...) \
  (LIKELY(REAL(name) != NULL) ? REAL(name)(__VA_ARGS__) : (errno = ENOSYS, failure))

#endif
