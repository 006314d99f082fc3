/* unwind_index.h: records of .eh_frame in a program that has no sorted table of them, as gcc -static links it.
 *
 * Nothing says where they begin either.  Both is found out once, a piece with each stack: the first record by its looks, then
 * which records begin in which bytes of the code.  Lock-free: two threads may do one piece, and find the same. */
#ifndef HAK_STACK_UNWIND_INDEX_H
#define HAK_STACK_UNWIND_INDEX_H

#include "os/os.h"

/* Does another piece; false when there is nothing left to do. */
bool unwind_index_go_on(void);

/* The record that speaks of the instruction, by the module's sorted table or, without one, as far as the index has come. */
uintptr_t unwind_find_record(const struct os_module *module, uintptr_t instruction);

#endif
