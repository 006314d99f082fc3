#include "foreign/operators.h"

#include "base/atomic.h"
#include "config/options.h"
#include "map/window.h"

/* Addresses of the operators as the linker resolved them, and of ours (override_cxx.c), which are
 * left out where hakmem does not replace malloc. The program's linker has chosen, or the dynamic
 * linker before any code ran: no call is made here, no lock is waited for. */
#define DECLARE(member, name) extern char name[] WEAK, hak_##member[] WEAK HIDDEN;
CALLED_OPERATORS(DECLARE)

static struct other_operators others;

/* An array form defaults to that of one object, as in the C++ library. */
COLD static void note(struct other_operators *found) {
  if (!found->new_array) found->new_array = found->new_plain;
  if (!found->new_array_aligned) found->new_array_aligned = found->new_aligned;
  if (!found->delete_array) found->delete_array = found->delete_plain;
  if (!found->delete_array_aligned) found->delete_array_aligned = found->delete_aligned;
  others = *found; /* several threads may write the same values */
  window_divert_operators();
}

RESIDENT NOINLINE static void look(void) {
  struct other_operators found = {0};
#define FIND(member, name)                                              \
  if (hak_##member && name && UNLIKELY(&name[0] != &hak_##member[0])) { \
    *(void **)&found.member = name;                                     \
    found.are_any = true;                                               \
  }
  CALLED_OPERATORS(FIND)
  if (UNLIKELY(found.are_any)) note(&found); /* else its page stays as it is */
}

RESIDENT const struct other_operators *operators_of_others(void) {
  static ATOMIC(bool) is_known; /* release after, acquire before: the members are there */
  if (UNLIKELY(!load_acquire(&is_known))) {
    look();
    store_release(&is_known, true);
  }
  return &others;
}

/* A library may have private operators that make blocks by malloc; the Rust compiler's LLVM has. So
 * a malloc block in a delete is reported only at the higher level. */
bool operators_mismatch(enum maker made_by, enum maker freed_as) {
  uint64_t wanted = options.harden_operators * options.harden;
  bool is_mallocs = made_by == MADE_BY_MALLOC || freed_as == MADE_BY_MALLOC;
  return made_by != freed_as && wanted > (is_mallocs ? 1u : 0u) && operators_are_ours();
}
