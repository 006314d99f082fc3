/* unwind.h: the call stack of this thread. */
#ifndef HAK_PROFILE_UNWIND_H
#define HAK_PROFILE_UNWIND_H

#include "base/compiler.h"

/* Return addresses, the innermost first, `max` at most; how many, and whether the stack's start was reached. */
size_t unwind_stack(uintptr_t *frames, size_t max, bool *is_complete);

#endif
