#include "fortify/real.h"

#include <dlfcn.h>

/* Weak: a reference to another library's function is NULL until this library is relocated. */
extern void *dlsym(void *restrict handle, const char *restrict name) WEAK;

ATOMIC(void *) real_found[REAL_COUNT]; /* relaxed: all find the same */

/* The search may come here again. */
static ATOMIC(uint32_t) searches;

void *real_find(enum real_function which, const char *name, void *loop) {
  void *found = NULL;
  if (!&dlsym) return loop;
  if (fetch_add_relaxed(&searches, 1) == 0) found = dlsym(RTLD_NEXT, name);
  fetch_sub_relaxed(&searches, 1);
  if (!found) return loop;
  store_relaxed(&real_found[which], found);
  return found;
}

RUN_AT_LOAD static void find_all(void) {
#define REAL_FUNCTION(name) real_or(REAL_##name, #name, NULL);
#include "fortify/real.def"
#undef REAL_FUNCTION
}
