/* huge.h: where the kernel may put transparent huge pages, if it gives them unasked (mode `always`) or HAKMEM_THP asks for them.
 *
 * A huge page makes 2 MiB resident at the first touch, and khugepaged makes one of any 2 MiB with a single resident page: pages that were
 * given back become resident again. So hakmem's law is (docs/decisions/0027):
 *
 *   law: a chunk that may have huge pages is used as a whole, or not at all; before a part of its pages goes back,
 *        or is used beside unused ones, the chunk is refused huge pages
 *
 * Chunks are mapped at the frontier with the kernel's default; neighbours that are refused huge pages merge into one mapping again. In
 * the modes `madvise` and `never` this file does nothing. The mode is
 * asked for with the second chunk: the first is refused them unasked, by one call where three ask. */
#ifndef HAK_MAP_HUGE_H
#define HAK_MAP_HUGE_H

#include "base/atomic.h"
#include "map/window.h"
#include "os/os.h"

struct huge {
  ATOMIC(uint32_t) divisions; /* places where a mapping may end: one side was let in alone */
  ATOMIC(size_t) let_in_end;  /* the chunk after those let in last */
};
extern struct huge huge;

/* Memory just mapped that never has huge pages. */
INLINE void huge_keep_out(uintptr_t address, size_t bytes) {
  if (UNLIKELY(os_huge_pages_always())) os_advise_huge((void *)address, bytes, false); /* NOLINT */
}

/* Chunks that have just been mapped and will be used as wholes: true when they may have huge pages. */
bool huge_let_in(size_t chunk, size_t count);

/* The chunk is used in part from now on, or given back in part. Any thread may call it, several at a time too. */
void huge_refuse(size_t chunk, ATOMIC(bool) *may_be_huge);

#endif
