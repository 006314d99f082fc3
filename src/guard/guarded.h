/* guarded.h: guarded blocks (HAKMEM_GUARD=1): closed ranges (checked/checked_range.h) for requests
 * that are chosen at random, each with the call stacks of its last malloc and free.
 *
 * All of them are cut from one range when the library starts. A freed one stays closed until all
 * others that are free have been used: any access to it faults. */
#ifndef HAK_GUARD_GUARDED_H
#define HAK_GUARD_GUARDED_H

#include "base/atomic.h"
#include "os/os.h"
#include "ranges/range.h"
#include "report/report.h"

/* The stacks of a range's last block. */
struct guard {
  struct call_stack allocated, freed;
};

/* The subject of the last report, for a reader of a core dump. It can be a mixture of two
 * concurrent reports, which a program that goes on after a misuse may have. */
struct guard_report {
  const struct guard *guard; /* NULL: there was none */
  const char *kind, *what;   /* "double", "free"; "use-after-free", "read" … */
  uintptr_t address, block;
  size_t block_bytes;
  bool is_freed;
  struct call_stack stack;
};
extern struct guard_report guard_report;

/* The granules of each: a page is closed on either side of the block. */
INLINE size_t guarded_granules(void) { return os_page_bytes() < GRANULE_BYTES ? 1 : 2; }

/* Makes the ranges, once, as options.guard_bytes says; false when refused. */
bool guarded_start(struct counters *counters);
/* Whether there are any. */
bool guarded_is_ready(void);

/* The range that has been free for the longest, or NO_GRANULE. */
size_t guarded_take(void);
void guarded_give(size_t granule);
/* The tenths of them that have live blocks, approximately. */
unsigned guarded_tenths_used(void);

/* Record this thread's stack, for a range whose info.is_guarded is set. */
void guarded_note_malloc(size_t granule);
void guarded_note_free(size_t granule);
/* Describes a block as guarded; reports then show its stacks, that of free if it is not live. */
void guarded_describe(bool is_live, struct block_description *description);

#endif
