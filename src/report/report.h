/* report.h: everything hakmem ever says, one named function each.
 *
 * Each message is one line on standard error that begins "hakmem: "; about a guarded block (guard/guarded.h),
 * and in hardened mode, more such lines follow, with the call stacks.  A misuse then ends the program by
 * abort, unless misuse_action says otherwise: then the function returns, and whoever found the misuse leaves
 * the block alone.  Warnings let the program go on.  Nothing here allocates. */
#ifndef HAK_REPORT_REPORT_H
#define HAK_REPORT_REPORT_H

#include "base/compiler.h"
#include "os/os.h"

/* What follows a misuse; set once, when the options are read. */
enum misuse_action { MISUSE_ABORT, MISUSE_WARN, MISUSE_IGNORE };
extern enum misuse_action misuse_action;

/* Whether a misuse's line is followed by the call stack, of this thread and now: what a stack is made with may allocate,
 * and wait for the dynamic linker.  NULL: never.  Set once. */
extern bool (*misuse_may_walk)(void);

/* What is known of a block when a fault is reported. */
struct block_description {
  uintptr_t base;        /* where the block begins */
  size_t block_bytes;    /* its usable size */
  const char *tier;      /* "tiny", "mid", "large", "big" */
  unsigned class_number; /* of its size class; 0 for big */
  uint32_t thread_id;    /* of the thread whose heap owns it; 0: none now, or not known */
};

/* `verb` is what the program tried: "free", "realloc", … */
COLD void report_invalid_pointer(const char *verb, uintptr_t address);
COLD void report_foreign_pointer(const char *verb, uintptr_t address);
COLD void report_misaligned_pointer(const char *verb, uintptr_t address,
                                    const struct block_description *block);
COLD void report_double_free(const char *verb, uintptr_t address,
                             const struct block_description *block);
/* `size` is what a sized delete says, `wanted` what the block was made for, or a text about it. */
COLD void report_size_mismatch(const char *verb, uintptr_t address, size_t size,
                               const struct block_description *block);

/* What was made by `maker` ("new[]", say) is given to `verb`, which is for others. */
COLD void report_wrong_maker(const char *verb, uintptr_t address, const char *maker,
                             const struct block_description *block);

/* Somebody wrote `offset` bytes after the block's start, where it is not the program's: past what was asked for
 * (description->block_bytes); at that byte exactly, or somewhere there. */
COLD void report_overflow(const char *verb, uintptr_t address, size_t offset, bool is_exact,
                          const struct block_description *block);
/* Somebody wrote to memory that nobody has, `distance` bytes before the block or after its start. */
COLD void report_write_beside(const char *verb, uintptr_t address, size_t distance, bool is_before,
                              const struct block_description *block);
/* Somebody wrote there after the block was freed. */
COLD void report_write_after_free(uintptr_t address, size_t offset,
                                  const struct block_description *block);

/* A function of the C library was given a block's bytes that are not there. */
struct access_fault {
  const char *function;
  uintptr_t address; /* from here on `bytes` bytes */
  size_t bytes;
  bool is_write;
  uintptr_t caller;                      /* where the call stack begins */
  const struct block_description *block; /* NULL: none ever lived there, as far as is known */
  bool is_free;                          /* the block */
};
COLD void report_access(const struct access_fault *fault);

enum { CALL_STACK_FRAMES = 16 };
struct call_stack {
  uint32_t thread;
  uint32_t frame_count;
  uintptr_t frames[CALL_STACK_FRAMES];
};

/* What is known of a guarded block. */
struct guarded_block {
  uintptr_t base;
  size_t size;                        /* as asked for */
  const struct call_stack *allocated; /* by the thread that asked */
  const struct call_stack *freed;     /* NULL while it lives */
};

/* A fault at or around a guarded block; NULL when none ever was there.  The program goes on to its own
 * handler, or dies by the signal. */
COLD void report_guarded_fault(const struct os_crash *crash, const struct guarded_block *block,
                               const struct call_stack *here);
COLD void report_guarded_double_free(const char *verb, uintptr_t address,
                                     const struct guarded_block *block,
                                     const struct call_stack *here);
COLD void report_guarded_interior(const char *verb, uintptr_t address,
                                  const struct guarded_block *block, const struct call_stack *here);
/* `verb` found that the byte at `address`, outside the block, had been written. */
COLD void report_guarded_overwrite(const char *verb, uintptr_t address,
                                   const struct guarded_block *block,
                                   const struct call_stack *here);

/* The process is about to die by `signal_name`, inside the allocator. */
COLD void report_crash(const char *signal_name, uintptr_t instruction, uintptr_t address);

COLD void warn_unknown_option(const char *name);
COLD void warn_malformed_option(const char *name, const char *value, const char *expected);
COLD void warn_stats_file(const char *path);
/* What is wrong with a limit, and what holds now; or that there is less, and whose. */
COLD void warn_limit(const char *name, const char *value, const char *wrong, const char *holds);
COLD void warn_limit_beyond(const char *name, const char *value, const char *whose, uint64_t bytes);
COLD void warn_no_cgroup_limit(const char *name, const char *value);
COLD void warn_no_helper_thread(void);
COLD void warn_no_guards(void);

#endif
