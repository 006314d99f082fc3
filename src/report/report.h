/* report.h: everything hakmem ever says, one named function each.
 *
 * Each message is one line on standard error that begins "hakmem: ".  Faults then end the program by
 * abort; warnings let it go on.  Nothing here allocates. */
#ifndef HAK_REPORT_REPORT_H
#define HAK_REPORT_REPORT_H

#include "base/compiler.h"

/* What is known of a block when a fault is reported. */
struct block_description {
  uintptr_t base;        /* where the block begins */
  size_t block_bytes;    /* its usable size */
  const char *tier;      /* "tiny", "mid", "large", "big" */
  unsigned class_number; /* of its size class; 0 for big */
};

/* `verb` is what the program tried: "free", "realloc", … */
NORETURN COLD void report_invalid_pointer(const char *verb, uintptr_t address);
NORETURN COLD void report_foreign_pointer(const char *verb, uintptr_t address);
NORETURN COLD void report_misaligned_pointer(const char *verb, uintptr_t address,
                                             const struct block_description *block);
NORETURN COLD void report_double_free(const char *verb, uintptr_t address,
                                      const struct block_description *block);

/* The process is about to die by `signal_name`, inside the allocator. */
COLD void report_crash(const char *signal_name, uintptr_t instruction, uintptr_t address);

COLD void warn_unknown_option(const char *name);
COLD void warn_malformed_option(const char *name, const char *value, const char *expected);
COLD void warn_stats_file(const char *path);
COLD void warn_no_helper_thread(void);

#endif
