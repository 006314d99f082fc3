/* object.h: finds the block that an address lies in: for any address, without a report, a lock or a
 * wait. */
#ifndef HAK_HEAP_OBJECT_H
#define HAK_HEAP_OBJECT_H

#include "report/report.h"

enum object_kind {
  OBJECT_UNKNOWN,  /* not hakmem's, or not decidable in bounded time */
  OBJECT_NONE,     /* hakmem's memory, but not a block of the program */
  OBJECT_PAST_END, /* in a live block, past the requested bytes */
  OBJECT_LIVE,
};

struct object {
  uintptr_t base;
  size_t bytes;   /* as requested in hardened mode and of guarded blocks, else the usable bytes */
  uint32_t entry; /* of the owner map */
};
/* For OBJECT_NONE the base is that of the free block around the address, or 0. */

/* `is_hurried`: in bounded time, and fit for a signal handler.  For a block that another thread
 * frees or resizes meanwhile the answer may be the old or the new state; hurried, the page of a
 * freed block above 32 KiB may then be touched, as the program will. */
enum object_kind object_find(uintptr_t address, bool is_hurried, struct object *object);

/* Describes the object for a report. */
struct block_description object_describe(const struct object *object);

/* True within a slow path of this thread, where blocks are neither live nor free; when the thread
 * is ending; and before the dynamic linker has set up the first thread's thread-local variables,
 * when it resolves indirect functions. */
bool object_is_ours_at_work(void);

#endif
