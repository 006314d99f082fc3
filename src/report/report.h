/* report.h: hakmem's messages.
 *
 * Each message is one line on standard error that begins "hakmem: "; about a guarded block
 * (guard/guarded.h), and in hardened mode, more such lines follow, with the call stacks. A misuse
 * then ends the program by abort, unless misuse_action says otherwise: then the function returns,
 * and its caller leaves the block alone. Warnings let the program go on. Nothing here allocates. */
#ifndef HAK_REPORT_REPORT_H
#define HAK_REPORT_REPORT_H

#include "base/text.h"

/* The consequence of a misuse; set once, when the options are read. */
enum misuse_action { MISUSE_ABORT, MISUSE_WARN, MISUSE_IGNORE };
extern enum misuse_action misuse_action;

/* Whether the call stack of this thread follows a misuse's line: naming its frames may wait for the
 * linker. NULL: never. Set once. */
extern bool (*misuse_may_walk)(void);

enum { REPORT_LINE_BYTES = 512 };
struct report_line {
  struct text text;
  char bytes[REPORT_LINE_BYTES];
};

/* A line put together from pieces. */
struct text *report_begin(struct report_line *line);
void report_end(struct report_line *line);
/* A complete line. */
COLD TAKES_FORMAT(1, 2) void report_line(const char *format, ...);
/* Lines of any number and length, to a file descriptor. */
void report_to_descriptor(void (*report)(struct text *), int descriptor);

enum { CALL_STACK_FRAMES = 16 };
struct call_stack {
  uint32_t thread;
  uint32_t frame_count;
  uintptr_t frames[CALL_STACK_FRAMES];
};

/* The stack of this thread, from the instruction `from` on; 0: from here. */
void call_stack_note(struct call_stack *stack, uintptr_t from);
/* "<what> by thread …" and a line for each frame. */
void report_stack(const char *what, const struct call_stack *stack);

struct misuse;

/* The known facts about a block in a report. */
struct block_description {
  uintptr_t base;        /* where the block begins */
  size_t block_bytes;    /* its usable size */
  const char *tier;      /* "tiny", "mid", "large", "big", "guarded" */
  unsigned class_number; /* its size class; 0 for big */
  uint32_t thread_id;    /* the owning heap's thread; 0: none now, or unknown */
  const char *heap_name; /* the owning named heap's name; NULL: none, or unknown */
  /* Tells the stacks of the misuse and of the block's malloc and free; NULL: it is not guarded. */
  void (*tell_stacks)(const struct misuse *misuse);
};

struct misuse {
  const char *kind; /* "double", "overflow seen at", … */
  const char *verb; /* the program's call: "free", "realloc", … */
  uintptr_t address;
  const struct block_description *block; /* NULL: unknown */
  uintptr_t caller;                      /* where the call stack begins; 0: here */
  bool is_harmless;                      /* a warning: the program goes on */
};

/* "[warning: ]<kind> <verb> of <address>: <what> (<class of the block>)"; then the call stack in
 * hardened mode, else, if the program ends, the options that show more. */
COLD TAKES_FORMAT(2, 3) void report_misuse(const struct misuse *misuse, const char *what, ...);

/* Misuses that are found in several places. */
COLD void report_invalid_pointer(const char *verb, uintptr_t address);
COLD void report_double_free(const char *verb, uintptr_t address,
                             const struct block_description *block);
/* A double free; or a misaligned one: the address lies inside the block. */
COLD void report_no_block(const char *verb, uintptr_t address,
                          const struct block_description *block);
/* A write `offset` bytes after the block's start, past the requested size (block->block_bytes); at
 * that byte exactly, or somewhere after. */
COLD void report_overflow(const char *verb, uintptr_t address, size_t offset, bool is_exact,
                          const struct block_description *block);
/* A write to free memory, beside the block that is freed. */
COLD void report_write_beside(uintptr_t freed, uintptr_t written,
                              const struct block_description *block);

#endif
