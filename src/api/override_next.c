/* All functions are looked up at once, before the program has a second thread: the dynamic linker's
 * lock is held while a library is loaded, whose initialiser may wait for a thread that calls one;
 * and in a forked child for ever, if another thread held it. */
#include "api/override_next.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/os.h"

static ATOMIC(void *) found[NEXT_CALL_COUNT]; /* relaxed: every thread finds the same */

/* Older C libraries have threads in a library of their own, which may not be loaded yet. */
static void find_all(void) {
#define CALL(name) [NEXT_##name] = #name,
  static const char names[][18] = {NEXT_CALLS(CALL)};
#undef CALL
  for (unsigned call = 0; call < NEXT_CALL_COUNT; call++)
    if (!load_relaxed(&found[call])) store_relaxed(&found[call], os_next_symbol(names[call]));
}

RESIDENT void *next_call(enum next_call which) {
  if (UNLIKELY(!load_relaxed(&found[which]))) find_all();
  return load_relaxed(&found[which]);
}
