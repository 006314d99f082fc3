#include "guard/operators.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "map/window.h"
#include "os/os.h"

static struct other_operators others;

/* As everybody finds it, and ours (override_cxx.c), which is left out where hakmem does not replace malloc. */
extern void _ZdlPv(void *block) WEAK;
extern void hak_delete_plain(void *block) WEAK HIDDEN;

/* One symbol, which the dynamic linker has found: a program that has any operators of its own has that one. */
RESIDENT static bool may_be_others(void) {
  return &operators_find_linked || (&_ZdlPv != &hak_delete_plain && &hak_delete_plain);
}

static bool find_named(struct other_operators *found) {
#define FIND(member, name) *(void **)&found->member = os_symbol_of_another(#name);
  CALLED_OPERATORS(FIND)
  return true;
}

/* As the C++ library's forms of arrays, which call those of one object. */
static void let_arrays_follow(void) {
  if (!others.new_array) others.new_array = others.new_plain;
  if (!others.new_array_aligned) others.new_array_aligned = others.new_aligned;
  if (!others.delete_array) others.delete_array = others.delete_plain;
  if (!others.delete_array_aligned) others.delete_array_aligned = others.delete_aligned;
}

COLD static void look(void) {
  if (!(&operators_find_linked ? operators_find_linked(&others) : find_named(&others))) return;
  let_arrays_follow();
  window_divert_operators();
}

RESIDENT const struct other_operators *operators_of_others(void) {
  static ATOMIC(bool) has_looked; /* relaxed: a process has one thread when it first allocates */
  if (UNLIKELY(may_be_others()) && !load_relaxed(&has_looked)) {
    store_relaxed(&has_looked, true); /* first: older C libraries allocate to look a symbol up */
    look();
  }
  return &others;
}

/* By name, where it does not matter what that takes: a program may have an operator new of its own without a delete. */
bool operators_are_ours(void) {
  struct other_operators found = *operators_of_others();
  if (!&operators_find_linked) find_named(&found);
  return !found.new_plain && !found.new_array && !found.delete_plain && !found.delete_array;
}
