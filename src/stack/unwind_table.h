/* unwind_table.h: finding an instruction's record in a module's .eh_frame.
 *
 * The format is that of the Linux Standard Base (exception frames), with DWARF's call frame instructions in it. */
#ifndef HAK_STACK_UNWIND_TABLE_H
#define HAK_STACK_UNWIND_TABLE_H

#include "os/os.h"
#include "stack/unwind_bytes.h"

/* The records of one function: one of its own, and one that it shares with others. */
struct unwind_record {
  uintptr_t function;
  struct unwind_bytes common_program, program; /* instructions; the common ones come first */
  uint64_t code_unit;
  int64_t data_unit;
  bool is_signal; /* the frame has no caller: a signal came between two instructions */
};

/* The address of the instruction's record; 0 without one. */
uintptr_t unwind_table_search(const struct os_module *module, uintptr_t instruction);

/* Reads a record, and the length of its code in bytes; false when it is not a function's, or has an unsupported form. */
bool unwind_table_describe(const struct os_module *module, uintptr_t record,
                           struct unwind_record *found, uintptr_t *code_bytes);

/* The record after it; 0 after the last, and where there is none. */
uintptr_t unwind_table_next(const struct os_module *module, uintptr_t record);

/* Reads it; false, too, when it does not cover the instruction. */
bool unwind_table_read(const struct os_module *module, uintptr_t record, uintptr_t instruction,
                       struct unwind_record *found);

/* Whether the record's function begins at the instruction. */
bool unwind_table_has_start(const struct os_module *module, uintptr_t record,
                            uintptr_t instruction);

/* A checksum that changes, but for one chance in 2^32, with the bytes of the record or of its common one; 0 without a record in the module
 * at that address. */
uint32_t unwind_table_check(const struct os_module *module, uintptr_t record);

#endif
