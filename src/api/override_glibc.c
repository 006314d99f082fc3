/* override_glibc.c: glibc's questions and knobs beside malloc, answered for this heap.  Other C libraries have
 * none of them. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#ifdef __GLIBC__

#include "base/compiler.h"
#include "hakmem/hakmem.h"
#include "heap/scavenge.h"
#include "observe/reports.h"
#include "observe/snapshot.h"
#include "os/os.h"

enum { STANDARD_ERROR = 2 };

/* `pad` asks to keep so many bytes at the top of the break, which this heap does not use. */
EXPORT int malloc_trim(size_t pad) {
  (void)pad;
  return scavenge_now(heap_of_thread, true) != 0;
}

/* The fields that have a meaning here; those about the break's bins, fast bins and chunks are 0. */
EXPORT struct mallinfo2 mallinfo2(void) {
  struct snapshot snapshot;
  snapshot_take(&snapshot);
  size_t in_use = snapshot.slab_bytes_out + snapshot.large_live_bytes + snapshot.big_live_bytes;
  size_t mapped = snapshot.mapped_bytes;
  return (struct mallinfo2){
      .arena = mapped,                                   /* address space of the heap */
      .uordblks = in_use,                                /* in blocks, threads' caches included */
      .fordblks = mapped > in_use ? mapped - in_use : 0, /* the rest of it */
      .keepcost = snapshot.dirty_free_bytes,             /* what malloc_trim could give back */
      .hblkhd = snapshot.big_live_bytes,                 /* blocks above 1 MiB */
      .hblks = snapshot.counters[COUNT_big_allocs] - snapshot.counters[COUNT_big_frees],
  };
}

static int capped(size_t value) { return value > INT32_MAX ? INT32_MAX : (int)value; }

/* The old interface has room for 2 GiB only: larger figures stay at the maximum, they do not wrap. */
EXPORT struct mallinfo mallinfo(void) {
  struct mallinfo2 info = mallinfo2();
  return (struct mallinfo){
      .arena = capped(info.arena),
      .uordblks = capped(info.uordblks),
      .fordblks = capped(info.fordblks),
      .keepcost = capped(info.keepcost),
      .hblkhd = capped(info.hblkhd),
      .hblks = capped(info.hblks),
  };
}

/* None of glibc's knobs exists here: 0 says so, as for an unknown one. */
EXPORT int mallopt(int parameter, int value) {
  (void)parameter;
  (void)value;
  return 0;
}

EXPORT void malloc_stats(void) { report_to_descriptor(report_as_text, STANDARD_ERROR); }

/* XML with glibc's outer element, so that readers of it find the totals. */
EXPORT int malloc_info(int options, FILE *stream) {
  if (options != 0) {
    errno = EINVAL;
    return -1;
  }
  struct mallinfo2 info = mallinfo2();
  int cancelling = os_cancel_off(); /* a stream's write may be a cancellation point */
  int written = fprintf(stream,
                        "<malloc version=\"1\">\n"
                        "<total type=\"rest\" size=\"%zu\"/>\n"
                        "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
                        "<system type=\"current\" size=\"%zu\"/>\n"
                        "<aspace type=\"total\" size=\"%zu\"/>\n"
                        "</malloc>\n",
                        info.fordblks, info.hblks, info.hblkhd, info.arena, info.arena);
  os_cancel_restore(cancelling);
  return written < 0 ? -1 : 0;
}

#endif
