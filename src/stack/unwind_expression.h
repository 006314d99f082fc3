/* unwind_expression.h: DWARF expressions, as far as frames are described by them. */
#ifndef HAK_STACK_UNWIND_EXPRESSION_H
#define HAK_STACK_UNWIND_EXPRESSION_H

#include "stack/unwind_bytes.h"

/* `offset` bytes above a register; if is_loaded, `added` bytes above what is stored there. */
struct unwind_value {
  unsigned base;
  bool is_loaded;
  int64_t offset, added;
};

/* Evaluates an expression at the instruction; false when it has none of the supported shapes. */
bool unwind_expression_read(struct unwind_bytes expression, uintptr_t instruction,
                            struct unwind_value *value);

#endif
