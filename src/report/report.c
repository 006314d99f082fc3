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

void warn_no_helper_thread(void) {
  struct line line;
  text_string(
      warning_begin(&line),
      "HAKMEM_HELPER_THREAD=1: no thread can be started; memory is given back by slow paths");
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
