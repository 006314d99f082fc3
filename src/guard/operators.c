#include "guard/operators.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "map/window.h"
#include "os/os.h"

static struct other_operators others;

/* As everybody finds it, and ours (override_cxx.c), which is left out where hakmem does not replace malloc. */
extern void _ZdlPv(void *block) WEAK;
extern void hak_delete_plain(void *block) WEAK HIDDEN;

/* Set first: older C libraries allocate to look a symbol up. */
COLD static void look(void) {
  static ATOMIC(bool) has_looked; /* relaxed: a process has one thread when it first allocates */
  if (load_relaxed(&has_looked)) return;
  store_relaxed(&has_looked, true);
#define LOOK(member, name) *(void **)&others.member = os_symbol_of_another(#name);
  CALLED_OPERATORS(LOOK)
  window_divert_deletes();
}

/* One symbol, which the dynamic linker has found: a program that has any operators of its own has that one. */
RESIDENT const struct other_operators *operators_of_others(void) {
  if (UNLIKELY(&_ZdlPv != &hak_delete_plain) && &hak_delete_plain) look();
  return &others;
}
