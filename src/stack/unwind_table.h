/* unwind_table.h: from an instruction to its rule, by a module's .eh_frame.
 *
 * The format is that of the Linux Standard Base (exception frames), with DWARF's call frame
 * instructions in it.
 *
 *   unwind_cache_find → unwind_find_record → unwind_table_read → unwind_program_run →
 *   unwind_expression_read */
#ifndef HAK_STACK_UNWIND_TABLE_H
#define HAK_STACK_UNWIND_TABLE_H

#include "os/os.h"
#include "stack/unwind_bytes.h"
#include "stack/unwind_rule.h"

/* The records of one function: one of its own, and one that it shares with others. */
struct unwind_record {
  uintptr_t function;
  struct unwind_bytes common_program, program; /* instructions; the common ones come first */
  uint64_t code_unit;
  int64_t data_unit;
  bool is_signal; /* the frame has no caller: a signal came between two instructions */
};

/* The address of the instruction's record, by the sorted table; 0 without one. */
uintptr_t unwind_table_search(const struct os_module *module, uintptr_t instruction);

/* Reads a record, and the length of its code in bytes; false when it is not a function's, or has an
 * unsupported form. */
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

/* A checksum that changes, but for one chance in 2^32, with the bytes of the record or of its
 * common one; 0 without a record in the module at that address. */
uint32_t unwind_table_check(const struct os_module *module, uintptr_t record);

/* ---- the index, for a program that has no sorted table of its records, as gcc -static links it
 * -------------------------
 *
 * Nor does such a program say where the records begin. Both are found out once, a piece with each
 * stack: the first record by its content, then which records begin in which bytes of the code.
 * Lock-free: two threads may do the same piece, and find the same. */

/* Does another piece; false when all are done. */
bool unwind_index_go_on(void);
/* The record for the instruction, by the module's sorted table or, without one, by the index as far
 * as it has come. */
uintptr_t unwind_find_record(const struct os_module *module, uintptr_t instruction);

/* ---- a record's instructions ----------------------------------------------------------------- */

/* A DWARF expression, as far as frames are described by them: `offset` bytes above a register; if
 * is_loaded, `added` bytes above what is stored there. */
struct unwind_value {
  unsigned base;
  bool is_loaded;
  int64_t offset, added;
};
/* Evaluates an expression at the instruction; false when it has none of the supported shapes. */
bool unwind_expression_read(struct unwind_bytes expression, uintptr_t instruction,
                            struct unwind_value *value);

/* Runs a record up to the instruction, whose rule results; false when a struct unwind_rule cannot
 * hold it. */
bool unwind_program_run(const struct unwind_record *record, uintptr_t instruction,
                        struct unwind_rule *rule);

/* The rule at an instruction of the module, from a cache: finding one takes long, and the same call
 * sites recur. False when its tables have none, or express it in an unsupported way. */
bool unwind_cache_find(const struct os_module *module, uintptr_t instruction,
                       struct unwind_rule *rule);

#endif
