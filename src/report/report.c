#include "report/report.h"

#include <string.h>

#include "os/os.h"
#include "stack/unwind.h"

enum { STANDARD_ERROR = 2 };

enum misuse_action misuse_action = MISUSE_ABORT;

/* ---- lines ----------------------------------------------------------------------------------- */

struct text *report_begin(struct report_line *line) {
  text_init(&line->text, line->bytes, REPORT_LINE_BYTES - 1); /* keeps room for the newline */
  text_string(&line->text, "hakmem: ");
  return &line->text;
}

/* One write, so that lines of several threads do not mix. */
void report_end(struct report_line *line) {
  line->bytes[line->text.length_bytes] = '\n';
  os_write(STANDARD_ERROR, line->bytes, line->text.length_bytes + 1);
}

void report_line(const char *format, ...) {
  struct report_line line;
  va_list arguments;
  va_start(arguments, format);
  text_format_list(report_begin(&line), format, arguments);
  va_end(arguments);
  report_end(&line);
}

void report_to_descriptor(void (*report)(struct text *), int descriptor) {
  char buffer[2048];
  struct text text;
  text_init(&text, buffer, sizeof buffer);
  text.sink = os_write;
  text.sink_argument = descriptor;
  report(&text);
  text_flush(&text);
}

/* ---- call stacks ----------------------------------------------------------------------------- */

enum {
  HANDLER_FRAMES_MAX = 24
}; /* frames of a signal handler, inside the interrupted instruction */

void call_stack_note(struct call_stack *stack, uintptr_t from) {
  uintptr_t found[CALL_STACK_FRAMES + HANDLER_FRAMES_MAX];
  bool is_complete;
  size_t count =
      unwind_stack(found, from ? sizeof found / sizeof *found : CALL_STACK_FRAMES, &is_complete);
  size_t first = 0;
  while (from && first < count && found[first] != from) first++;
  if (first == count) first = 0; /* not found among them */
  if (count - first > CALL_STACK_FRAMES) count = first + CALL_STACK_FRAMES;
  stack->thread = os_thread_id();
  stack->frame_count = (uint32_t)(count - first);
  memcpy(stack->frames, found + first, (count - first) * sizeof *found);
}

static void report_frame(unsigned number, uintptr_t instruction) {
  struct report_line line;
  struct text *text = report_begin(&line);
  struct os_place place;
  os_find_place(instruction, &place);
  text_format(text, "    #%u %#zx", number, instruction);
  if (place.module) text_format(text, " %s+%#zx", place.module, instruction - place.module_base);
  if (place.symbol) text_format(text, " (%s+%#zx)", place.symbol, instruction - place.symbol_base);
  report_end(&line);
}

void report_stack(const char *what, const struct call_stack *stack) {
  report_line("  %s by thread %u%s", what, stack->thread,
              stack->frame_count ? ":" : " (no call stack)");
  for (unsigned number = 0; number < stack->frame_count && number < CALL_STACK_FRAMES; number++)
    report_frame(number, stack->frames[number]);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

bool (*misuse_may_walk)(void);

static void report_stack_here(const char *verb, uintptr_t from) {
  if (!misuse_may_walk || !misuse_may_walk()) return;
  struct call_stack here;
  call_stack_note(&here, from);
  if (here.frame_count) report_stack(verb, &here);
}

static const char next_step[] =
    "HAKMEM_HARDEN=1 shows its call stack; HAKMEM_GUARD=1 those of malloc, free and misuse of "
    "sampled blocks";

static void append_class(struct text *text, const struct block_description *block) {
  if (!block) {
    text_string(text, " (class none)");
    return;
  }
  text_format(text, " (%s", block->tier);
  if (!block->tell_stacks) text_format(text, " class %u", block->class_number);
  if (block->heap_name) {
    text_string(text, ", of heap \"");
    text_name(text, block->heap_name);
    text_char(text, '"');
  } else if (block->thread_id) {
    text_format(text, ", of thread %u", block->thread_id);
  }
  text_char(text, ')');
}

void report_misuse(const struct misuse *misuse, const char *what, ...) {
  struct report_line line;
  va_list arguments;
  if (misuse_action == MISUSE_IGNORE) return;
  struct text *text = report_begin(&line);
  text_format(text, "%s%s %s of %#zx: ", misuse->is_harmless ? "warning: " : "", misuse->kind,
              misuse->verb, misuse->address);
  va_start(arguments, what);
  text_format_list(text, what, arguments);
  va_end(arguments);
  append_class(text, misuse->block);
  report_end(&line);
  bool is_guarded = misuse->block && misuse->block->tell_stacks;
  if (is_guarded)
    misuse->block->tell_stacks(misuse);
  else
    report_stack_here(misuse->verb, misuse->caller);
  if (misuse_action != MISUSE_ABORT || misuse->is_harmless) return;
  if (!misuse_may_walk && !is_guarded) report_line("  %s", next_step); /* not in hardened mode */
  os_abort();
}

void report_invalid_pointer(const char *verb, uintptr_t address) {
  report_misuse(&(struct misuse){"invalid", verb, address, NULL, 0, false}, "no block lives there");
}

void report_double_free(const char *verb, uintptr_t address,
                        const struct block_description *block) {
  report_misuse(&(struct misuse){"double", verb, address, block, 0, false},
                "the block of %zu bytes is free already", block->block_bytes);
}

void report_no_block(const char *verb, uintptr_t address, const struct block_description *block) {
  if (address == block->base)
    report_double_free(verb, address, block);
  else
    report_misuse(&(struct misuse){"misaligned", verb, address, block, 0, false},
                  "inside the block of %zu bytes at %#zx", block->block_bytes, block->base);
}

void report_overflow(const char *verb, uintptr_t address, size_t offset, bool is_exact,
                     const struct block_description *block) {
  report_misuse(&(struct misuse){"overflow seen at", verb, address, block, 0, false},
                "written past its %zu bytes, %s offset %zu", block->block_bytes,
                is_exact ? "first at" : "somewhere after", offset);
}

void report_write_beside(uintptr_t freed, uintptr_t written,
                         const struct block_description *block) {
  bool is_before = written < freed;
  report_misuse(&(struct misuse){"stray write seen at", "free", freed, block, 0, false},
                "free memory was written to, %zu bytes %s its block of %zu bytes",
                is_before ? freed - written : written - freed,
                is_before ? "before" : "after the start of", block->block_bytes);
}
