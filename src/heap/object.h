/* object.h: which block an address lies in, whoever asks: for any address, without a report, a lock or a wait. */
#ifndef HAK_HEAP_OBJECT_H
#define HAK_HEAP_OBJECT_H

#include "report/report.h"

enum object_kind {
  OBJECT_UNKNOWN,  /* not ours to judge, or not to be told in bounded time */
  OBJECT_NONE,     /* our memory, and no block of the program */
  OBJECT_PAST_END, /* in a live block, past what was asked for */
  OBJECT_LIVE,
};

struct object {
  uintptr_t base;
  size_t
      bytes; /* as asked for in hardened mode and of guarded blocks, else those that may be used */
  uint32_t entry; /* of the owner map; 0 for a guarded block */
};
/* Of OBJECT_NONE the base is that of the free block which the address is in, or 0. */

/* `is_hurried`: in bounded time, and fit for a signal handler.  What is told of a block that another thread frees or
 * resizes meanwhile may be what was, or what will be; hurried, the page of a freed block above 32 KiB may then be
 * touched, as the asking program is about to. */
enum object_kind object_find(uintptr_t address, bool is_hurried, struct object *object);

/* What is known of the object, for a report. */
struct block_description object_describe(const struct object *object);

/* True in the middle of a slow path of this thread, where blocks are neither live nor free; at its end; and before the
 * dynamic linker has given the first thread its thread-local variables, when it resolves indirect functions. */
bool object_is_ours_at_work(void);

#endif
