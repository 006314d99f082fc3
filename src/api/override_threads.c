/* override_threads.c: wraps calls about threads, in libhakmem.so only: those before which the fork
 * handlers must be registered, and those that fail while the helper thread exists.
 *
 * In a forked child handlers run in the order of their registration, and until ours has run no
 * handler may allocate: a lock may be held by a thread that the fork did not copy.  So ours must be
 * registered first.  At load is too late: libraries that the program is linked with are initialised
 * before.  It is also expensive: a page of the C library that small processes have no other need of
 * (docs/decisions/0012).  So ours are registered when other handlers are, and at the latest when
 * the first thread is started.  A process that never does either needs no guard at a fork. */
#include <stdlib.h>

#ifdef __GLIBC__

#include <errno.h>

#include "api/override_next.h"
#include "api/override_threads.h"
#include "cache/divert.h"
#include "heap/fork.h"
#include "reclaim/helper.h"

typedef int start_function(void *, const void *, void *(*)(void *), void *);
typedef int start_c11_function(void *, int (*)(void *), void *);
typedef int register_function(void (*)(void), void (*)(void), void (*)(void), void *);

enum { THREAD_ERROR = 2 }; /* thrd_error */

static int start_thread(void *thread, const void *attributes, void *(*body)(void *),
                        void *argument) {
  start_function *start;
  heaps_at_fork();
  *(void **)&start = next_call(NEXT_pthread_create);
  if (!start) return ENOSYS;
  int error = start(thread, attributes, body, argument);
  /* A start must not fail for lack of the thread that the helper uses (RLIMIT_NPROC, a cgroup's
   * pids.max). */
  bool is_again = error == EAGAIN && !helper_is(body) && helper_stop(true);
  return is_again ? start(thread, attributes, body, argument) : error;
}
/* The C library keeps what it allocates for a thread longer than that lives, with its stack: that
 * must lie in no named heap. */
int hak_start_thread(void *thread, const void *attributes, void *(*body)(void *), void *argument) {
  struct hak_heap *used = divert_set_aside();
  int error = start_thread(thread, attributes, body, argument);
  divert_take_up(used);
  return error;
}
int pthread_create(void *thread, const void *attributes, void *(*body)(void *), void *argument)
    EXPORT_ALIAS_OF(hak_start_thread);

EXPORT_UNDECLARED(int, thrd_create, void *thread, int (*body)(void *), void *argument) {
  start_c11_function *start;
  heaps_at_fork();
  *(void **)&start = next_call(NEXT_thrd_create);
  struct hak_heap *used = divert_set_aside();
  int error = start ? start(thread, body, argument) : THREAD_ERROR;
  divert_take_up(used);
  return error;
}

/* Some namespaces are for a process with one thread only (unshare(2), setns(2)). */
static int call_alone(enum next_call which, int first, int second) {
  int (*next)(int, int);
  *(void **)&next = next_call(which); /* before helper_stop: it may allocate, and start a helper */
  helper_stop(false);
  if (next) return next(first, second);
  errno = ENOSYS;
  return -1;
}
EXPORT_UNDECLARED(int, unshare, int flags) { return call_alone(NEXT_unshare, flags, 0); }
EXPORT_UNDECLARED(int, setns, int descriptor, int type) {
  return call_alone(NEXT_setns, descriptor, type);
}

/* The function that pthread_atfork calls, ours too. */
EXPORT_UNDECLARED(RESIDENT int, __register_atfork, void (*prepare)(void), void (*parent)(void),
                  void (*child)(void), void *library) {
  register_function *next;
  heaps_at_fork();
  *(void **)&next = next_call(NEXT___register_atfork);
  return next ? next(prepare, parent, child, library) : ENOSYS;
}

#endif
