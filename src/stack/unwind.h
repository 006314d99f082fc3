/* unwind.h: call stacks, for samples of the heap.
 *
 * Works at any place: in a signal handler, inside dlopen and dlclose, after a fork, on a stack of
 * any size, also one that the program made and switched to, and one that was overwritten. It takes
 * no lock, allocates nothing, and calls only the kernel (os_can_read), for stacks that it does not
 * know yet. docs/decisions/0033. */
#ifndef HAK_STACK_UNWIND_H
#define HAK_STACK_UNWIND_H

#include "base/compiler.h"

/* Writes the return addresses of this thread's callers, innermost first, `max` at most, and returns
 * their number. They begin where hakmem was called; in tests that have it as single objects, with
 * unwind_stack's own caller. `is_complete` becomes true when the last one belongs to the function
 * in which the thread, or a stack made by makecontext, began: it is false where there were more
 * than `max`, and where tables are missing. errno is kept. */
size_t unwind_stack(uintptr_t *frames, size_t max, bool *is_complete);

/* Whether an address lies where this thread's stack is known to be readable, while the thread
 * runs. */
bool unwind_knows(uintptr_t address);

/* Does at once the work that the first stacks of some programs otherwise do in pieces, being
 * incomplete until then. */
void unwind_prepare(void);

#endif
