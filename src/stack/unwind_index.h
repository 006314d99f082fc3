/* unwind_index.h: records of .eh_frame in a program that has no sorted table of them, as gcc -static links it.
 *
 * Nor does such a program say where the records begin. Both are found out once, a piece with each stack: the first record by its content,
 * then which records begin in which bytes of the code. Lock-free: two threads may do the same piece, and find the same. */
#ifndef HAK_STACK_UNWIND_INDEX_H
#define HAK_STACK_UNWIND_INDEX_H

#include "os/os.h"

/* Does another piece; false when all are done. */
bool unwind_index_go_on(void);

/* The record for the instruction, by the module's sorted table or, without one, by the index as far as it has come. */
uintptr_t unwind_find_record(const struct os_module *module, uintptr_t instruction);

#endif
