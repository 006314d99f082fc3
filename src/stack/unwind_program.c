#include "stack/unwind_table.h"

/* DWARF 5, 7.24, and GNU's own.  Those of the first three kinds have a number in their low six
 * bits. */
enum {
  ADVANCE = 0x40,
  OFFSET = 0x80,
  RESTORE = 0xc0,
  KIND_MASK = 0xc0,
  NOP = 0x00,
  ADVANCE1 = 0x02,
  ADVANCE2 = 0x03,
  ADVANCE4 = 0x04,
  OFFSET_EXTENDED = 0x05,
  RESTORE_EXTENDED = 0x06,
  UNDEFINED = 0x07,
  SAME_VALUE = 0x08,
  IN_REGISTER = 0x09,
  REMEMBER = 0x0a,
  RECALL = 0x0b,
  DEFINE_END = 0x0c,
  DEFINE_END_REGISTER = 0x0d,
  DEFINE_END_OFFSET = 0x0e,
  DEFINE_END_EXPRESSION = 0x0f,
  EXPRESSION = 0x10,
  OFFSET_EXTENDED_SIGNED = 0x11,
  DEFINE_END_SIGNED = 0x12,
  DEFINE_END_OFFSET_SIGNED = 0x13,
  VALUE_OFFSET = 0x14,
  VALUE_OFFSET_SIGNED = 0x15,
  VALUE_EXPRESSION = 0x16,
  NEGATE_SIGNED_STATE = 0x2d, /* of return addresses; signatures are always taken off */
  ARGUMENTS_BYTES = 0x2e
};

enum { REMEMBERED_MAX = 8, WORD = sizeof(uintptr_t) };

struct run {
  const struct unwind_record *record;
  uintptr_t instruction, place; /* the wanted instruction; the current place */
  struct unwind_bytes rest;
  struct unwind_rule rule, initial, remembered[REMEMBERED_MAX];
  unsigned remembered_count;
  bool is_lost; /* a rule cannot hold the result */
};

static uint64_t take_unsigned(struct run *run) { return bytes_take_unsigned_leb(&run->rest); }

static unsigned take_register(struct run *run) {
  return unwind_register_of_column(take_unsigned(run));
}

static int64_t take_scaled(struct run *run, bool is_signed) {
  uint64_t factor = is_signed ? (uint64_t)bytes_take_signed_leb(&run->rest) : take_unsigned(run);
  return (int64_t)(factor * (uint64_t)run->record->data_unit);
}

static struct unwind_bytes take_expression(struct run *run) {
  uint64_t count = take_unsigned(run);
  return bytes_part(&run->rest, count);
}

/* ---- where registers are --------------------------------------------------------------------- */

/* A register in none of the sets still has the caller's value. */
static void put_nowhere(struct unwind_rule *rule, unsigned which) {
  uint8_t others = (uint8_t) ~(1U << which);
  rule->saved &= others;
  rule->lost &= others;
  rule->from_base &= others;
  if (which == REGISTER_RETURN) rule->is_outermost = false;
}

static void put_lost(struct unwind_rule *rule, unsigned which, bool is_undefined) {
  put_nowhere(rule, which);
  rule->lost |= (uint8_t)(1U << which);
  if (which == REGISTER_RETURN) rule->is_outermost = is_undefined;
}

static void put_offset(struct unwind_rule *rule, unsigned which, int64_t offset) {
  int16_t place = (int16_t)(offset / WORD);
  put_lost(rule, which, false);
  if (which == REGISTER_COUNT || (int64_t)place * WORD != offset) return;
  put_nowhere(rule, which);
  rule->place[which] = place;
  rule->saved |= (uint8_t)(1U << which);
}

static void put_expression(struct run *run, unsigned which, struct unwind_bytes expression) {
  struct unwind_rule *rule = &run->rule;
  struct unwind_value value;
  bool is_known = unwind_expression_read(expression, run->instruction, &value);
  put_lost(rule, which, false);
  if (!is_known || value.is_loaded || (rule->from_base && rule->base != value.base)) return;
  put_offset(rule, which, value.offset);
  rule->base = (uint8_t)value.base;
  rule->from_base = (uint8_t)(rule->from_base | (rule->saved & 1U << which));
}

/* As in the common record, which saves no register by an expression unless it saves all so. */
static void restore(struct run *run, unsigned which) {
  const struct unwind_rule *initial = &run->initial;
  bool was_saved = which < REGISTER_COUNT && initial->saved >> which & 1;
  put_nowhere(&run->rule, which);
  if (was_saved) put_offset(&run->rule, which, (int64_t)initial->place[which] * WORD);
}

/* The instructions that say where a register is; false for others. */
static bool put_by(struct run *run, uint8_t operation) {
  unsigned which = take_register(run);
  switch (operation) {
    case OFFSET_EXTENDED:
    case OFFSET_EXTENDED_SIGNED:
      put_offset(&run->rule, which, take_scaled(run, operation == OFFSET_EXTENDED_SIGNED));
      return true;
    case EXPRESSION: put_expression(run, which, take_expression(run)); return true;
    case RESTORE_EXTENDED: restore(run, which); return true;
    case SAME_VALUE: put_nowhere(&run->rule, which); return true;
    case UNDEFINED: break;
    case IN_REGISTER: /* neither these nor values are kept: no frame's end depends on them */
    case VALUE_OFFSET:
    case VALUE_OFFSET_SIGNED: take_unsigned(run); break;
    case VALUE_EXPRESSION: take_expression(run); break;
    default: return false;
  }
  put_lost(&run->rule, which, operation == UNDEFINED);
  return true;
}

/* ---- where the frame ends -------------------------------------------------------------------- */

static void end_at(struct run *run, const struct unwind_value *value) {
  struct unwind_rule *rule = &run->rule;
  rule->end_offset = (int32_t)value->offset;
  rule->loaded_offset = (int16_t)value->added;
  rule->end_is_loaded = value->is_loaded;
  bool fits = rule->end_offset == value->offset && rule->loaded_offset == value->added;
  rule->end_register = (uint8_t)(fits ? value->base : REGISTER_COUNT);
}

/* The instructions that define the frame's end; false for others. */
static bool end_by(struct run *run, uint8_t operation) {
  struct unwind_value value = {.base = run->rule.end_register, .offset = run->rule.end_offset};
  switch (operation) {
    case DEFINE_END:
      value.base = take_register(run);
      value.offset = (int64_t)take_unsigned(run);
      break;
    case DEFINE_END_SIGNED:
      value.base = take_register(run);
      value.offset = take_scaled(run, true);
      break;
    case DEFINE_END_REGISTER: value.base = take_register(run); break;
    case DEFINE_END_OFFSET: value.offset = (int64_t)take_unsigned(run); break;
    case DEFINE_END_OFFSET_SIGNED: value.offset = take_scaled(run, true); break;
    case DEFINE_END_EXPRESSION:
      if (!unwind_expression_read(take_expression(run), run->instruction, &value))
        value.base = REGISTER_COUNT;
      break;
    default: return false;
  }
  end_at(run, &value);
  return true;
}

/* ---- the instructions ------------------------------------------------------------------------ */

static void recall(struct run *run) {
  run->is_lost |= run->remembered_count == 0;
  if (!run->is_lost) run->rule = run->remembered[--run->remembered_count];
}

static void remember(struct run *run) {
  run->is_lost |= run->remembered_count == REMEMBERED_MAX;
  if (!run->is_lost) run->remembered[run->remembered_count++] = run->rule;
}

static void advance(struct run *run, uint64_t factor) {
  run->place += factor * run->record->code_unit;
}

static void run_other(struct run *run, uint8_t operation) {
  switch (operation) {
    case NOP:
    case NEGATE_SIGNED_STATE: break;
    case ADVANCE1: advance(run, bytes_take(&run->rest, 1)); break;
    case ADVANCE2: advance(run, bytes_take(&run->rest, 2)); break;
    case ADVANCE4: advance(run, bytes_take(&run->rest, 4)); break;
    case REMEMBER: remember(run); break;
    case RECALL: recall(run); break;
    case ARGUMENTS_BYTES: take_unsigned(run); break;
    default: run->is_lost |= !end_by(run, operation) && !put_by(run, operation);
  }
}

static void run_one(struct run *run) {
  uint8_t operation = bytes_take_one(&run->rest), number = operation & (uint8_t)~KIND_MASK;
  unsigned which = unwind_register_of_column(number);
  switch (operation & KIND_MASK) {
    case ADVANCE: advance(run, number); break;
    case OFFSET: put_offset(&run->rule, which, take_scaled(run, false)); break;
    case RESTORE: restore(run, which); break;
    default: run_other(run, operation);
  }
}

/* Runs the part that concerns the instruction: until the place is beyond it. */
static void run_program(struct run *run, struct unwind_bytes program) {
  run->rest = program;
  while (bytes_left(&run->rest) && !run->is_lost && run->place <= run->instruction) run_one(run);
}

bool unwind_program_run(const struct unwind_record *record, uintptr_t instruction,
                        struct unwind_rule *rule) {
  struct run run = {.record = record, .instruction = instruction, .place = record->function};
  run.rule = (struct unwind_rule){.end_register = REGISTER_COUNT, .is_signal = record->is_signal};
  run_program(&run, record->common_program);
  run.initial = run.rule;
  run_program(&run, record->program);
  *rule = run.rule;
  return !run.is_lost && (rule->is_outermost || rule->end_register != REGISTER_COUNT);
}
