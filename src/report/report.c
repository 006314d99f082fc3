#include "report/report.h"

#include "base/atomic.h"
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

/* A line that is no misuse. */
TAKES_FORMAT(1, 2) static void say(const char *format, ...) {
  struct line line;
  va_list arguments;
  va_start(arguments, format);
  text_format_list(line_begin(&line), format, arguments);
  va_end(arguments);
  line_end(&line);
}

/* ---- call stacks ------------------------------------------------------------------------------------- */

static void say_frame(unsigned number, uintptr_t instruction) {
  struct line line;
  struct text *text = line_begin(&line);
  struct os_place place;
  os_find_place(instruction, &place);
  text_format(text, "    #%u %#zx", number, instruction);
  if (place.module) text_format(text, " %s+%#zx", place.module, instruction - place.module_base);
  if (place.symbol) text_format(text, " (%s+%#zx)", place.symbol, instruction - place.symbol_base);
  line_end(&line);
}

static void say_stack(const char *what, const struct call_stack *stack) {
  say("  %s by thread %u%s", what, stack->thread, stack->frame_count ? ":" : " (no call stack)");
  for (unsigned number = 0; number < stack->frame_count && number < CALL_STACK_FRAMES; number++)
    say_frame(number, stack->frames[number]);
}

/* ---- misuse ------------------------------------------------------------------------------------------ */

bool (*misuse_may_walk)(void);
static ATOMIC(uint32_t) walker; /* the thread that walks its stack; relaxed: asked by itself */

/* None for what goes wrong while a stack is walked. */
static void say_stack_here(const char *verb, uintptr_t from) {
  struct call_stack here = {.thread = os_thread_id()};
  if (load_relaxed(&walker) == here.thread || !misuse_may_walk || !misuse_may_walk()) return;
  store_relaxed(&walker, here.thread);
  here.frame_count = os_backtrace(here.frames, CALL_STACK_FRAMES, from);
  if (here.frame_count) say_stack(verb, &here);
  store_relaxed(&walker, 0);
}

/* The line of a misuse that `verb` found; returns when the program is to go on. */
static void misuse_end(struct line *line, const char *verb, uintptr_t from) {
  if (misuse_action == MISUSE_IGNORE) return;
  line_end(line);
  say_stack_here(verb, from);
  if (misuse_action == MISUSE_ABORT) os_abort();
}

static struct text *misuse_begin(struct line *line, const char *kind, const char *verb,
                                 uintptr_t address) {
  struct text *text = line_begin(line);
  text_format(text, "%s %s of %#zx: ", kind, verb, address);
  return text;
}

static void class_of_block(struct text *text, const struct block_description *block) {
  text_format(text, " (%s class %u", block->tier, block->class_number);
  if (block->thread_id) text_format(text, ", of thread %u", block->thread_id);
  text_char(text, ')');
}

/* "<kind> <verb> of <address>: <what> (<class of the block>)" */
TAKES_FORMAT(5, 6)
static void misuse(const char *kind, const char *verb, uintptr_t address,
                   const struct block_description *block, const char *what, ...) {
  struct line line;
  struct text *text = misuse_begin(&line, kind, verb, address);
  va_list arguments;
  va_start(arguments, what);
  text_format_list(text, what, arguments);
  va_end(arguments);
  if (block)
    class_of_block(text, block);
  else
    text_string(text, " (class none)");
  misuse_end(&line, verb, 0);
}

void report_invalid_pointer(const char *verb, uintptr_t address) {
  misuse("invalid", verb, address, NULL, "no block lives there");
}

void report_foreign_pointer(const char *verb, uintptr_t address) {
  misuse("foreign", verb, address, NULL, "neither hakmem's nor libc's");
}

void report_misaligned_pointer(const char *verb, uintptr_t address,
                               const struct block_description *block) {
  misuse("misaligned", verb, address, block, "inside the block of %zu bytes at %#zx",
         block->block_bytes, block->base);
}

void report_double_free(const char *verb, uintptr_t address,
                        const struct block_description *block) {
  misuse("double", verb, address, block, "the block of %zu bytes is free already",
         block->block_bytes);
}

void report_size_mismatch(const char *verb, uintptr_t address, size_t size,
                          const struct block_description *block) {
  misuse("mismatched", verb, address, block, "said to have %zu bytes, a block of %zu", size,
         block->block_bytes);
}

void report_wrong_maker(const char *verb, uintptr_t address, const char *maker,
                        const struct block_description *block) {
  misuse("mismatched", verb, address, block, "the block of %zu bytes was made by %s",
         block->block_bytes, maker);
}

void report_overflow(const char *verb, uintptr_t address, size_t offset, bool is_exact,
                     const struct block_description *block) {
  misuse("overflow seen at", verb, address, block, "written past its %zu bytes, %s offset %zu",
         block->block_bytes, is_exact ? "first at" : "somewhere after", offset);
}

void report_write_beside(const char *verb, uintptr_t address, size_t distance, bool is_before,
                         const struct block_description *block) {
  misuse("stray write seen at", verb, address, block,
         "free memory was written to, %zu bytes %s its block of %zu bytes", distance,
         is_before ? "before" : "after the start of", block->block_bytes);
}

void report_write_after_free(uintptr_t address, size_t offset,
                             const struct block_description *block) {
  misuse("write after", "free", address, block,
         "the free block of %zu bytes was written to at offset %zu", block->block_bytes, offset);
}

void report_access(const struct access_fault *fault) {
  struct line line;
  const struct block_description *block = fault->block;
  const char *kind = !block            ? "invalid access in"
                     : fault->is_free  ? "use after free in"
                     : fault->is_write ? "overflow in"
                                       : "over-read in";
  struct text *text = misuse_begin(&line, kind, fault->function, fault->address);
  text_format(text, "%s %zu bytes, ", fault->is_write ? "writes" : "reads", fault->bytes);
  if (block && fault->is_free) {
    text_format(text, "the block of %zu bytes at %#zx is free", block->block_bytes, block->base);
    class_of_block(text, block);
  } else if (block) {
    size_t offset = fault->address - block->base;
    text_format(text, "the block of %zu bytes at %#zx has %zu left", block->block_bytes,
                block->base, offset < block->block_bytes ? block->block_bytes - offset : 0);
    class_of_block(text, block);
  } else {
    text_string(text, "no block lives there (class none)");
  }
  misuse_end(&line, fault->function, fault->caller);
}

/* ---- guarded blocks -------------------------------------------------------------------------------- */

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
  const char *side = is_before(block, address)   ? "before"
                     : is_behind(block, address) ? "after"
                                                 : "into";
  text_format(text, "%zu bytes %s the block of %zu bytes at %#zx (guarded)", distance, side,
              block->size, block->base);
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
  const char *access = access_names[crash->access];
  text_format(text, "%s: %s at %#zx, ", guarded_kind(block, crash->address), access,
              crash->address);
  if (block)
    guarded_place(text, block, crash->address);
  else
    text_string(text, "where guarded blocks are; none was there yet");
  line_end(&line);
  say_stacks(access, here, block);
}

void report_guarded_double_free(const char *verb, uintptr_t address,
                                const struct guarded_block *block, const struct call_stack *here) {
  struct line line;
  text_format(misuse_begin(&line, "double", verb, address),
              "the block of %zu bytes is free already (guarded)", block->size);
  guarded_misuse_end(&line, verb, here, block);
}

void report_guarded_interior(const char *verb, uintptr_t address, const struct guarded_block *block,
                             const struct call_stack *here) {
  struct line line;
  guarded_place(misuse_begin(&line, "invalid", verb, address), block, address);
  guarded_misuse_end(&line, verb, here, block);
}

void report_guarded_overwrite(const char *verb, uintptr_t address,
                              const struct guarded_block *block, const struct call_stack *here) {
  struct line line;
  struct text *text = line_begin(&line);
  text_format(text, "%s: found by %s, written at %#zx, ", guarded_kind(block, address), verb,
              address);
  guarded_place(text, block, address);
  guarded_misuse_end(&line, verb, here, block);
}

/* ---- all else ----------------------------------------------------------------------------------------- */

void report_crash(const char *signal_name, uintptr_t instruction, uintptr_t address) {
  say("%s inside the allocator: instruction %#zx, address %#zx"
      " (the heap is corrupt, or a pointer given to it was wild)",
      signal_name, instruction, address);
}

void warn_unknown_option(const char *name) {
  say("warning: %s is not an option (HAKMEM_HELP=1 lists them); ignored", name);
}

void warn_malformed_option(const char *name, const char *value, const char *expected) {
  say("warning: %s=\"%s\" is not %s; ignored", name, value, expected);
}

void warn_stats_file(const char *path) {
  say("warning: HAKMEM_STATS: cannot write %s; no report", path);
}

void warn_limit(const char *name, const char *value, const char *wrong, const char *holds) {
  say("warning: %s=\"%s\" %s; %s", name, value, wrong, holds);
}

void warn_limit_beyond(const char *name, const char *value, const char *whose, uint64_t bytes) {
  say("warning: %s=\"%s\" is above the %s of %zu MiB; it holds, but that is met first", name, value,
      whose, (size_t)(bytes >> 20));
}

void warn_no_cgroup_limit(const char *name, const char *value) {
  say("warning: %s=%s: no memory limit of a cgroup is known to take a part of; ignored", name,
      value);
}

void warn_no_helper_thread(void) {
  if (os_is_confined()) return; /* it could not be had, and a write may be fatal */
  say("warning: HAKMEM_HELPER_THREAD=1: no thread can be started;"
      " memory is given back by slow paths");
}

void warn_no_guards(void) { say("warning: HAKMEM_GUARD=1: no address space; no block is guarded"); }

#if HAK_DEBUG
void assertion_failed(const char *expression, const char *file, int line_number) {
  say("assertion failed: %s at %s:%u", expression, file, (unsigned)line_number);
  os_abort();
}
#endif
