/* operators_linked.c: which of C++'s operators are the program's own, in libhakmem.a.  There ours are weak, and the program's linker has
 * chosen for each, in a program without a dynamic linker, too.  libhakmem.so has no such file: each address would be looked up
 * in every process. */
#include "guard/operators.h"

/* As chosen, and ours, which are left out where hakmem does not replace malloc: addresses. */
#define DECLARE(member, name) extern char name[] WEAK, hak_##member[] WEAK HIDDEN;
CALLED_OPERATORS(DECLARE)

bool operators_find_linked(struct other_operators *others) {
  bool is_any = false;
#define FIND(member, name)                                \
  if (&hak_##member[0] && &name[0] != &hak_##member[0]) { \
    *(void **)&others->member = name;                     \
    is_any = true;                                        \
  }
  CALLED_OPERATORS(FIND)
  return is_any;
}
