/* unwind_table.h: finding in a module's .eh_frame what is said about an instruction.
 *
 * The format is that of the Linux Standard Base (exception frames), with DWARF's call frame instructions in it. */
#ifndef HAK_STACK_UNWIND_TABLE_H
#define HAK_STACK_UNWIND_TABLE_H

#include "os/os.h"
#include "stack/unwind_bytes.h"

/* What is said of one function: a record of its own, and one that it shares with others. */
struct unwind_record {
  uintptr_t function;
  struct unwind_bytes common_program, program; /* instructions; the common ones come first */
  uint64_t code_unit;
  int64_t data_unit;
  bool is_signal; /* no caller: a signal came between two instructions */
};

/* Where the record is that speaks of the instruction; 0 without one. */
uintptr_t unwind_table_search(const struct os_module *module, uintptr_t instruction);

/* Reads it, and how many bytes of code it speaks of; false when it is no function's, or in a way that is not known here. */
bool unwind_table_describe(const struct os_module *module, uintptr_t record,
                           struct unwind_record *found, uintptr_t *code_bytes);

/* The record after it; 0 after the last, and where none lies. */
uintptr_t unwind_table_next(const struct os_module *module, uintptr_t record);

/* Reads it; false, too, when it does not speak of the instruction. */
bool unwind_table_read(const struct os_module *module, uintptr_t record, uintptr_t instruction,
                       struct unwind_record *found);

/* Whether the record's function begins at the instruction. */
bool unwind_table_has_start(const struct os_module *module, uintptr_t record,
                            uintptr_t instruction);

/* A number that is another one, but for one chance in 2^32, when the bytes of the record or of its common one are
 * others; 0 when there is no record in the module at that address. */
uint32_t unwind_table_check(const struct os_module *module, uintptr_t record);

#endif
