/* unwind_program.h: running the instructions of a record of .eh_frame up to one place of its function. */
#ifndef HAK_STACK_UNWIND_PROGRAM_H
#define HAK_STACK_UNWIND_PROGRAM_H

#include "stack/unwind_rule.h"
#include "stack/unwind_table.h"

/* The rule at the instruction; false when a struct unwind_rule cannot hold it. */
bool unwind_program_run(const struct unwind_record *record, uintptr_t instruction,
                        struct unwind_rule *rule);

#endif
