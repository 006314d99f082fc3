/* operators.h: a program's own C++ operators new and delete. A program may replace the plain forms
 * alone: all other forms are to call those, as the C++ library's do, which ours replace. So ours do
 * where other plain forms are found first: in the program, or in a library before this one. */
#ifndef HAK_FOREIGN_OPERATORS_H
#define HAK_FOREIGN_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "report/maker.h"

/* The operators that the other forms are to call: member, name.  Ours are hak_<member>, too
 * (api/override_cxx.c). */
#define CALLED_OPERATORS(X)                  \
  X(new_plain, _Znwm)                        \
  X(new_array, _Znam)                        \
  X(new_aligned, _ZnwmSt11align_val_t)       \
  X(new_array_aligned, _ZnamSt11align_val_t) \
  X(delete_plain, _ZdlPv)                    \
  X(delete_array, _ZdaPv)                    \
  X(delete_aligned, _ZdlPvSt11align_val_t)   \
  X(delete_array_aligned, _ZdaPvSt11align_val_t)

/* The program's own operators; NULL where ours serves. If the form for one object is the program's
 * and the array form ours, the array entry is the program's form for one object. */
struct other_operators {
  bool are_any;
  void *(*new_plain)(size_t size);
  void *(*new_array)(size_t size);
  void *(*new_aligned)(size_t size, size_t alignment);
  void *(*new_array_aligned)(size_t size, size_t alignment);
  void (*delete_plain)(void *block);
  void (*delete_array)(void *block);
  void (*delete_aligned)(void *block, size_t alignment);
  void (*delete_array_aligned)(void *block, size_t alignment);
};

/* The first call looks them up. It may be made before the window has a bound: initialisers of
 * libraries, and of the program, may allocate and delete before this library's own are run. */
const struct other_operators *operators_of_others(void);

/* Whether all blocks of our new and new[] are freed by our delete and delete[], and these free no
 * others. */
INLINE bool operators_are_ours(void) { return !operators_of_others()->are_any; }

/* Whether a free that does not fit the block's maker is to be reported. Not in a program that has
 * operators of its own, whose blocks may be made by malloc: others' inline code deletes them. */
bool operators_mismatch(enum maker made_by, enum maker freed_as);

#endif
