/* huge.h: where the kernel may put transparent huge pages.
 *
 * A huge page makes 2 MiB resident at the first touch, and khugepaged makes one of any 2 MiB with a
 * single resident page: pages that were given back become resident again. So hakmem's law is
 * (docs/decisions/0027):
 *
 *   law: a chunk that may have huge pages is used as a whole, or not at all; before a part of
 *   its pages goes back,
 *        or is used beside unused ones, the chunk is refused huge pages
 *
 * In the mode `always` chunks are mapped at the frontier with the kernel's default, and all but
 * those let in are refused huge pages; neighbours then merge into one mapping again. In the mode
 * `madvise` those of a growing heap are requested, and nothing else is done; in `never`, and with
 * HAKMEM_THP=0, none is let in. The mode is read with the second chunk: the first is refused huge
 * pages unasked, by one call where three ask. */
#ifndef HAK_MAP_HUGE_H
#define HAK_MAP_HUGE_H

#include "base/atomic.h"
#include "map/window.h"
#include "os/os.h"

/* A chunk's state. KEPT_OUT: since it was mapped; REFUSED: after it had been let in. */
enum { HUGE_KEPT_OUT, HUGE_LET_IN, HUGE_REFUSED };

struct huge {
  ATOMIC(uint32_t) divisions;    /* places where a mapping may end: one side was let in alone */
  ATOMIC(size_t) let_in_end;     /* the chunk after those let in last */
  ATOMIC(uint64_t) pause_end_ns; /* until then none is requested */
  ATOMIC(uint32_t) mapped;       /* chunks of growing heaps that might have been let in */
  ATOMIC(size_t)
  probe; /* the last of them kept out to see how much the program touches; 0: none yet */
};
extern struct huge huge;

/* Whether the kernel gives huge pages unasked. */
INLINE bool huge_is_default(void) { return UNLIKELY(os_huge_mode() == OS_HUGE_ALWAYS); }

/* Memory just mapped that never has huge pages. */
INLINE void huge_keep_out(uintptr_t address, size_t bytes) {
  if (huge_is_default()) os_advise_huge((void *)address, bytes, false); /* NOLINT */
}

/* Chunks that have just been mapped and will be used as wholes: their state. The kernel is not
 * asked for huge pages. */
char huge_let_in(size_t chunk, size_t count);
/* False where huge_request would refuse. */
bool huge_may_be_requested(void);
/* For a chunk that has no resident page and is the caller's alone, just mapped or let in: its
 * new state. Where the kernel wants to be asked for huge pages, it is. `are_wanted`: the heap is
 * large. */
char huge_request(size_t chunk, char state, bool is_just_mapped, bool are_wanted);
/* The state of a chunk whose addresses went back: mapped again it may have huge pages, which the
 * kernel gives only where no page table is left. */
char huge_forget(char state);
/* Its first touch, if it was let in. */
void huge_touch(size_t chunk);

/* The chunk is used in part from now on, or given back in part. Any thread may call it, several at
 * a time too. */
void huge_refuse(size_t chunk, ATOMIC(char) *state);

#endif
