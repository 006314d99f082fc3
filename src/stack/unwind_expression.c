/* unwind_expression.c: expressions are recognised, not run.  Compilers and the C library write
 * three shapes:
 *
 *   breg r, n                                       where a signal, or a function that aligns
 *                                                   its frame, saved a register
 *   breg r, n; deref [; plus_uconst m]              where their frames end
 *   breg sp, n; breg pc, 0; lit15; and; lit k; ge; lit3; shl; plus
 *                                                   the PLT: a word more from byte k of its
 *                                                   entry on */
#include "stack/unwind_table.h"

enum { DEREF = 0x06, PLUS_CONSTANT = 0x23, LITERAL0 = 0x30, REGISTER0 = 0x70, NUMBERS = 32 };
enum { AND = 0x1a, PLUS = 0x22, SHIFT_LEFT = 0x24, AT_LEAST = 0x2a };

static bool take_register(struct unwind_bytes *rest, unsigned *which, int64_t *offset) {
  unsigned column = bytes_take_one(rest) - REGISTER0;
  *which = unwind_register_of_column(column);
  *offset = bytes_take_signed_leb(rest);
  return column < NUMBERS && *which < REGISTER_COUNT;
}

static bool read_loaded(struct unwind_bytes rest, struct unwind_value *value) {
  if (bytes_take_one(&rest) != DEREF) return false;
  value->is_loaded = true;
  if (!bytes_left(&rest)) return true;
  bool is_sum = bytes_take_one(&rest) == PLUS_CONSTANT;
  value->added = (int64_t)bytes_take_unsigned_leb(&rest);
  return is_sum && !bytes_left(&rest);
}

static bool read_plt(struct unwind_bytes rest, uintptr_t instruction, struct unwind_value *value) {
  enum { ENTRY_MASK = 15, LOG2_WORD = 3, BYTE_AT = 2, BYTES = 7 };
  const uint8_t shape[BYTES] = {LITERAL0 + ENTRY_MASK, AND,        LITERAL0, AT_LEAST,
                                LITERAL0 + LOG2_WORD,  SHIFT_LEFT, PLUS};
  unsigned which;
  int64_t offset;
  if (!take_register(&rest, &which, &offset) || which != REGISTER_PC) return false;
  if (bytes_left(&rest) != BYTES) return false;
  for (unsigned byte = 0; byte < BYTES; byte++)
    if (byte != BYTE_AT && rest.at[byte] != shape[byte]) return false;
  unsigned first = rest.at[BYTE_AT] - (unsigned)LITERAL0;
  uintptr_t at = (instruction + (uintptr_t)offset) & ENTRY_MASK;
  if (at >= first) value->offset += (int64_t)sizeof(uintptr_t);
  return first <= ENTRY_MASK;
}

bool unwind_expression_read(struct unwind_bytes expression, uintptr_t instruction,
                            struct unwind_value *value) {
  *value = (struct unwind_value){0};
  if (!take_register(&expression, &value->base, &value->offset)) return false;
  return !bytes_left(&expression) || read_loaded(expression, value) ||
         read_plt(expression, instruction, value);
}
