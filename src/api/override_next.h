/* override_next.h: finds the functions that hakmem's wrappers call, in libhakmem.so only. */
#ifndef HAK_API_OVERRIDE_NEXT_H
#define HAK_API_OVERRIDE_NEXT_H

#define NEXT_CALLS(CALL) \
  CALL(pthread_create)   \
  CALL(thrd_create)      \
  CALL(unshare) CALL(setns) CALL(__register_atfork) CALL(prctl) CALL(dlopen) CALL(dlmopen)

#define CALL(name) NEXT_##name,
enum next_call { NEXT_CALLS(CALL) NEXT_CALL_COUNT };
#undef CALL

/* The next definition after ours; NULL without one.  The first call finds all of them; later ones
 * ask the dynamic linker only for a function that was not found.  Thread-safe. */
void *next_call(enum next_call which);

#endif
