#include "report/report.h"

#include "base/text.h"
#include "os/os.h"

enum { LINE_BYTES = 512, STANDARD_ERROR = 2 };

enum misuse_action misuse_action = MISUSE_ABORT;

struct line {
  struct text text;
  char bytes[LINE_BYTES];
};

static struct text *line_begin(struct line *line) {
  text_init(&line->text, line->bytes, LINE_BYTES - 1); /* keeps room for the newline */
  text_string(&line->text, "hakmem: ");
  return &line->text;
}

/* One write, so that lines of several threads do not mix. */
static void line_end(struct line *line) {
  line->bytes[line->text.length_bytes] = '\n';
  os_write(STANDARD_ERROR, line->bytes, line->text.length_bytes + 1);
}

/* The line of a misuse; returns when the program is to go on. */
static void misuse_end(struct line *line) {
  if (misuse_action != MISUSE_IGNORE) line_end(line);
  if (misuse_action == MISUSE_ABORT) os_abort();
}

/* "<kind> <verb> of <address>: " */
static struct text *fault_begin(struct line *line, const char *kind, const char *verb,
                                uintptr_t address) {
  struct text *text = line_begin(line);
  text_string(text, kind);
  text_char(text, ' ');
  text_string(text, verb);
  text_string(text, " of ");
  text_hex(text, address);
  text_string(text, ": ");
  return text;
}

static void fault_block_class(struct text *text, const struct block_description *block) {
  text_string(text, " (");
  text_string(text, block->tier);
  text_string(text, " class ");
  text_decimal(text, block->class_number);
  if (block->thread_id) {
    text_string(text, ", of thread ");
    text_decimal(text, block->thread_id);
  }
  text_string(text, ")");
}

void report_invalid_pointer(const char *verb, uintptr_t address) {
  struct line line;
  text_string(fault_begin(&line, "invalid", verb, address), "no block lives there (class none)");
  misuse_end(&line);
}

void report_foreign_pointer(const char *verb, uintptr_t address) {
  struct line line;
  text_string(fault_begin(&line, "foreign", verb, address),
              "neither hakmem's nor libc's (class none)");
  misuse_end(&line);
}

void report_misaligned_pointer(const char *verb, uintptr_t address,
                               const struct block_description *block) {
  struct line line;
  struct text *text = fault_begin(&line, "misaligned", verb, address);
  text_string(text, "inside the block of ");
  text_decimal(text, block->block_bytes);
  text_string(text, " bytes at ");
  text_hex(text, block->base);
  fault_block_class(text, block);
  misuse_end(&line);
}

void report_double_free(const char *verb, uintptr_t address,
                        const struct block_description *block) {
  struct line line;
  struct text *text = fault_begin(&line, "double", verb, address);
  text_string(text, "the block of ");
  text_decimal(text, block->block_bytes);
  text_string(text, " bytes is free already");
  fault_block_class(text, block);
  misuse_end(&line);
}

void report_size_mismatch(const char *verb, uintptr_t address, size_t size,
                          const struct block_description *block) {
  struct line line;
  struct text *text = fault_begin(&line, "mismatched", verb, address);
  text_string(text, "said to have ");
  text_decimal(text, size);
  text_string(text, " bytes, a block of ");
  text_decimal(text, block->block_bytes);
  fault_block_class(text, block);
  misuse_end(&line);
}

void report_overflow(const char *verb, uintptr_t address, size_t offset, bool is_exact,
                     const struct block_description *block) {
  struct line line;
  struct text *text = fault_begin(&line, "overflow seen at", verb, address);
  text_string(text, "written to behind its ");
  text_decimal(text, block->block_bytes);
  text_string(text, " bytes, ");
  text_string(text, is_exact ? "first at offset " : "somewhere behind offset ");
  text_decimal(text, offset);
  fault_block_class(text, block);
  misuse_end(&line);
}

void report_write_after_free(uintptr_t address, size_t offset,
                             const struct block_description *block) {
  struct line line;
  struct text *text = line_begin(&line);
  text_string(text, "write after free of ");
  text_hex(text, address);
  text_string(text, ": the free block of ");
  text_decimal(text, block->block_bytes);
  text_string(text, " bytes was written to at offset ");
  text_decimal(text, offset);
  fault_block_class(text, block);
  misuse_end(&line);
}

/* ---- guarded blocks -------------------------------------------------------------------------------- */

static void say_frame(unsigned number, uintptr_t instruction) {
  struct line line;
  struct text *text = line_begin(&line);
  struct os_place place;
  os_find_place(instruction, &place);
  text_string(text, "    #");
  text_decimal(text, number);
  text_char(text, ' ');
  text_hex(text, instruction);
  if (place.module) {
    text_char(text, ' ');
    text_string(text, place.module);
    text_char(text, '+');
    text_hex(text, instruction - place.module_base);
  }
  if (place.symbol) {
    text_string(text, " (");
    text_string(text, place.symbol);
    text_char(text, '+');
    text_hex(text, instruction - place.symbol_base);
    text_char(text, ')');
  }
  line_end(&line);
}

/* "<what> by thread <number>:" and its frames. */
static void say_stack(const char *what, const struct call_stack *stack) {
  struct line line;
  struct text *text = line_begin(&line);
  text_string(text, "  ");
  text_string(text, what);
  text_string(text, " by thread ");
  text_decimal(text, stack->thread);
  text_string(text, stack->frame_count ? ":" : " (no call stack)");
  line_end(&line);
  for (unsigned number = 0; number < stack->frame_count && number < CALL_STACK_FRAMES; number++)
    say_frame(number, stack->frames[number]);
}

static void say_stacks(const char *what, const struct call_stack *here,
                       const struct guarded_block *block) {
  say_stack(what, here);
  if (!block) return;
  say_stack("allocated", block->allocated);
  if (block->freed) say_stack("freed", block->freed);
}

static void guarded_misuse_end(struct line *line, const char *verb, const struct call_stack *here,
                               const struct guarded_block *block) {
  if (misuse_action == MISUSE_IGNORE) return;
  line_end(line);
  say_stacks(verb, here, block);
  if (misuse_action == MISUSE_ABORT) os_abort();
}

static bool is_before(const struct guarded_block *block, uintptr_t address) {
  return address < block->base;
}
static bool is_behind(const struct guarded_block *block, uintptr_t address) {
  return address >= block->base + block->size;
}

/* "<distance> bytes <before, into, after> the block of <size> bytes at <address> (guarded)" */
static void guarded_place(struct text *text, const struct guarded_block *block, uintptr_t address) {
  size_t distance = is_before(block, address)   ? block->base - address
                    : is_behind(block, address) ? address - (block->base + block->size)
                                                : address - block->base;
  text_decimal(text, distance);
  text_string(text, is_before(block, address)   ? " bytes before"
                    : is_behind(block, address) ? " bytes after"
                                                : " bytes into");
  text_string(text, " the block of ");
  text_decimal(text, block->size);
  text_string(text, " bytes at ");
  text_hex(text, block->base);
  text_string(text, " (guarded)");
}

static const char *guarded_kind(const struct guarded_block *block, uintptr_t address) {
  if (!block) return "wild access";
  if (block->freed) return "use-after-free";
  if (is_before(block, address)) return "heap-buffer-underflow";
  if (is_behind(block, address)) return "heap-buffer-overflow";
  return "use-after-free (and used again)"; /* opened meanwhile */
}

static const char *const access_names[] = {"access", "read", "write"};

void report_guarded_fault(const struct os_crash *crash, const struct guarded_block *block,
                          const struct call_stack *here) {
  struct line line;
  struct text *text = line_begin(&line);
  text_string(text, guarded_kind(block, crash->address));
  text_string(text, ": ");
  text_string(text, access_names[crash->access]);
  text_string(text, " at ");
  text_hex(text, crash->address);
  text_string(text, ", ");
  if (block)
    guarded_place(text, block, crash->address);
  else
    text_string(text, "where guarded blocks are; none was there yet");
  line_end(&line);
  say_stacks(access_names[crash->access], here, block);
}

void report_guarded_double_free(const char *verb, uintptr_t address,
                                const struct guarded_block *block, const struct call_stack *here) {
  struct line line;
  struct text *text = fault_begin(&line, "double", verb, address);
  text_string(text, "the block of ");
  text_decimal(text, block->size);
  text_string(text, " bytes is free already (guarded)");
  guarded_misuse_end(&line, verb, here, block);
}

void report_guarded_interior(const char *verb, uintptr_t address, const struct guarded_block *block,
                             const struct call_stack *here) {
  struct line line;
  guarded_place(fault_begin(&line, "invalid", verb, address), block, address);
  guarded_misuse_end(&line, verb, here, block);
}

void report_guarded_overwrite(const char *verb, uintptr_t address,
                              const struct guarded_block *block, const struct call_stack *here) {
  struct line line;
  struct text *text = line_begin(&line);
  text_string(text, guarded_kind(block, address));
  text_string(text, ": found by ");
  text_string(text, verb);
  text_string(text, ", written at ");
  text_hex(text, address);
  text_string(text, ", ");
  guarded_place(text, block, address);
  guarded_misuse_end(&line, verb, here, block);
}

void report_crash(const char *signal_name, uintptr_t instruction, uintptr_t address) {
  struct line line;
  struct text *text = line_begin(&line);
  text_string(text, signal_name);
  text_string(text, " inside the allocator: instruction ");
  text_hex(text, instruction);
  text_string(text, ", address ");
  text_hex(text, address);
  text_string(text, " (the heap is corrupt, or a pointer given to it was wild)");
  line_end(&line);
}

static struct text *warning_begin(struct line *line) {
  struct text *text = line_begin(line);
  text_string(text, "warning: ");
  return text;
}

void warn_unknown_option(const char *name) {
  struct line line;
  struct text *text = warning_begin(&line);
  text_string(text, name);
  text_string(text, " is not an option (HAKMEM_HELP=1 lists them); ignored");
  line_end(&line);
}

void warn_malformed_option(const char *name, const char *value, const char *expected) {
  struct line line;
  struct text *text = warning_begin(&line);
  text_string(text, name);
  text_string(text, "=\"");
  text_string(text, value);
  text_string(text, "\" is not ");
  text_string(text, expected);
  text_string(text, "; ignored");
  line_end(&line);
}

void warn_stats_file(const char *path) {
  struct line line;
  struct text *text = warning_begin(&line);
  text_string(text, "HAKMEM_STATS: cannot write ");
  text_string(text, path);
  text_string(text, "; no report");
  line_end(&line);
}

void warn_no_cgroup_limit(const char *name, const char *value) {
  struct line line;
  struct text *text = warning_begin(&line);
  text_string(text, name);
  text_char(text, '=');
  text_string(text, value);
  text_string(text, ": no memory limit of a cgroup is known to take a part of; ignored");
  line_end(&line);
}

void warn_no_helper_thread(void) {
  struct line line;
  text_string(
      warning_begin(&line),
      "HAKMEM_HELPER_THREAD=1: no thread can be started; memory is given back by slow paths");
  line_end(&line);
}

void warn_no_guards(void) {
  struct line line;
  text_string(warning_begin(&line), "HAKMEM_GUARD=1: no address space; no block is guarded");
  line_end(&line);
}

#if HAK_DEBUG
void assertion_failed(const char *expression, const char *file, int line_number) {
  struct line line;
  struct text *text = line_begin(&line);
  text_string(text, "assertion failed: ");
  text_string(text, expression);
  text_string(text, " at ");
  text_string(text, file);
  text_char(text, ':');
  text_decimal(text, (uint64_t)line_number);
  line_end(&line);
  os_abort();
}
#endif
