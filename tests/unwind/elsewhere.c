/* elsewhere.c: where the dynamic linker does not tell of modules: the frames of those that were
 * there at load are found, none is made up; a stack whose start is reached is complete, and no
 * other is.
 *
 * With a library between them (THROUGH: tests/unwind/through.c), prints how many of the frames of
 * six calls in the program were found, and how many stacks were complete: of a signal handler,
 * whose signal the C library has sent from where it has no tables, of a thread, of a C11 thread,
 * and of the process. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

#include "os/os.h"
#include "stack/unwind.h"

#ifdef THROUGH
enum { FRAMES_OF_CALL = 2 };
int through(int (*function)(unsigned), unsigned depth);
#else
enum { FRAMES_OF_CALL = 1 };
static inline int through(int (*function)(unsigned), unsigned depth) { return function(depth) + 1; }
#endif

enum { DEPTH = 5, FRAMES_MAX = 100 };

static uintptr_t callers[DEPTH + 1];
static size_t found, complete_stacks;

__attribute__((noinline)) static int recurse(unsigned depth) {
  uintptr_t frames[FRAMES_MAX];
  volatile int result = (int)depth;
  bool is_complete;
  callers[depth] = (uintptr_t)__builtin_return_address(0);
  if (depth < DEPTH) return through(recurse, depth + 1) + result;
  size_t count = unwind_stack(frames, FRAMES_MAX, &is_complete);
  for (found = 0; FRAMES_OF_CALL * found + 1 < count && found <= DEPTH; found++)
    if (frames[FRAMES_OF_CALL * found + 1] != callers[DEPTH - found]) abort();
  if (is_complete && found <= DEPTH) abort();
  complete_stacks += is_complete;
  return result;
}

static void on_signal(int signal) { recurse((unsigned)(signal != SIGUSR1)); }

static void *thread_body(void *argument) {
  recurse(0);
  return argument;
}

static int c11_body(void *unused) {
  (void)unused;
  recurse(0);
  return 0;
}

int main(void) {
  pthread_t thread;
  thrd_t c11_thread;
  os_note_modules(true);
  unwind_prepare();
  signal(SIGUSR1, on_signal);
  if (raise(SIGUSR1) != 0 || pthread_create(&thread, NULL, thread_body, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  if (thrd_create(&c11_thread, c11_body, NULL) != thrd_success) return 1;
  thrd_join(c11_thread, NULL);
  recurse(0);
  printf("%zu %zu\n", found, complete_stacks);
  return 0;
}
