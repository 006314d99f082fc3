/* unwind_rule.h: how a frame leads to its caller's, at one instruction.
 *
 * A rule says where the frame ends (DWARF's canonical frame address: the stack pointer after the
 * return) and where on the stack the caller's registers lie. */
#ifndef HAK_STACK_UNWIND_RULE_H
#define HAK_STACK_UNWIND_RULE_H

#include "base/registers.h"

/* Sets of registers have a bit for each. */
struct unwind_rule {
  int32_t end_offset;     /* from the register's value to the frame's end … */
  int16_t loaded_offset;  /* … or, if end_is_loaded, from the word stored there */
  uint8_t end_register;   /* REGISTER_COUNT: one that is not kept */
  bool end_is_loaded : 1; /* frames that align themselves, and those of signals */
  bool is_signal : 1;     /* the caller was about to run its instruction, not to return to it */
  bool is_outermost : 1;  /* the frame has no caller */
  uint8_t saved, lost;    /* registers; all others still have the caller's value */
  uint8_t
      from_base; /* those of the saved that are counted from a register's value, not from the frame's end … */
  uint8_t base;                  /* … this register's */
  int16_t place[REGISTER_COUNT]; /* of the saved, in words */
};

/* The register with the number in .eh_frame; REGISTER_COUNT for one that is not kept. */
INLINE unsigned unwind_register_of_column(uint64_t column) {
  static const uint8_t columns[REGISTER_COUNT] = REGISTER_COLUMNS;
  unsigned which = 0;
  while (which < REGISTER_COUNT && columns[which] != column) which++;
  return which;
}

#endif
