#include "api/operators.h"

#include "base/compiler.h"
#include "map/window.h"
#include "os/os.h"

struct other_operators other_operators;

/* As everybody finds it, and ours (override_cxx.c), which is left out where hakmem does not replace malloc. */
extern void _ZdlPv(void *block) WEAK;
extern void hak_delete(void *block) WEAK HIDDEN;

COLD static void look_at_all(void) {
  *(void **)&other_operators.new_plain = os_symbol_of_another("_Znwm");
  *(void **)&other_operators.new_array = os_symbol_of_another("_Znam");
  *(void **)&other_operators.new_aligned = os_symbol_of_another("_ZnwmSt11align_val_t");
  *(void **)&other_operators.new_array_aligned = os_symbol_of_another("_ZnamSt11align_val_t");
  *(void **)&other_operators.delete_plain = os_symbol_of_another("_ZdlPv");
  *(void **)&other_operators.delete_array = os_symbol_of_another("_ZdaPv");
  *(void **)&other_operators.delete_aligned = os_symbol_of_another("_ZdlPvSt11align_val_t");
  *(void **)&other_operators.delete_array_aligned = os_symbol_of_another("_ZdaPvSt11align_val_t");
  window_divert_deletes();
}

/* One symbol, which the dynamic linker has found: a program that has any operators of its own has that one. */
RESIDENT void operators_look(void) {
  if (UNLIKELY(&_ZdlPv != &hak_delete) && &hak_delete) look_at_all();
}
