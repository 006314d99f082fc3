/* report.h: everything hakmem ever says, one named function each.
 *
 * Each message is one line on standard error that begins "hakmem: ".  A misuse then ends the program by
 * abort, unless misuse_action says otherwise: then the function returns, and whoever found the misuse leaves
 * the block alone.  Warnings let the program go on.  Nothing here allocates. */
#ifndef HAK_REPORT_REPORT_H
#define HAK_REPORT_REPORT_H

#include "base/compiler.h"

/* What follows a misuse; set once, when the options are read. */
enum misuse_action { MISUSE_ABORT, MISUSE_WARN, MISUSE_IGNORE };
extern enum misuse_action misuse_action;

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

/* Somebody wrote `offset` bytes behind the block's begin, where it is not the program's: behind what was asked for
 * (description->block_bytes); at that byte exactly, or somewhere there. */
COLD void report_overflow(const char *verb, uintptr_t address, size_t offset, bool is_exact,
                          const struct block_description *block);
/* Somebody wrote there after the block was freed. */
COLD void report_write_after_free(uintptr_t address, size_t offset,
                                  const struct block_description *block);

/* The process is about to die by `signal_name`, inside the allocator. */
COLD void report_crash(const char *signal_name, uintptr_t instruction, uintptr_t address);

COLD void warn_unknown_option(const char *name);
COLD void warn_malformed_option(const char *name, const char *value, const char *expected);
COLD void warn_stats_file(const char *path);
COLD void warn_no_helper_thread(void);

#endif
