/* override_glibc.c: glibc's questions and knobs beside malloc, answered for this heap.  Other C
 * libraries have none. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#ifdef __GLIBC__

#include "api/malloc_family.h"
#include "base/compiler.h"
#include "config/limits.h"
#include "heap/fast_path.h"
#include "observe/report_glibc.h"
#include "os/os.h"
#include "report/report.h"

enum { STANDARD_ERROR = 2 };

/* `pad`: bytes to keep at the top of the break, which this heap does not use. */
EXPORT int malloc_trim(size_t pad) {
  (void)pad;
  return family_purge(true) != 0; /* hak_purge would be looked up when a process starts */
}

/* The fields' meaning: observe/report_glibc.h. There are no fast bins: blocks in threads' caches
 * count as free blocks. */
EXPORT struct mallinfo2 mallinfo2(void) {
  struct glibc_figures figures;
  glibc_figures_take(&figures);
  return (struct mallinfo2){
      .arena = figures.system_bytes,
      .ordblks = figures.cached_blocks + figures.free_blocks +
                 1, /* and the fresh memory after it: glibc's top chunk */
      .hblks = figures.mmap_blocks,
      .hblkhd = figures.mmap_bytes,
      .uordblks = figures.in_use_bytes,
      .fordblks = figures.cached_bytes + figures.free_bytes,
      .keepcost = figures.keep_bytes,
  };
}

static int capped(size_t value) { return value > INT32_MAX ? INT32_MAX : (int)value; }

/* The old interface has room for 2 GiB only: larger figures stay at the maximum, they do not
 * wrap. */
EXPORT_UNDECLARED(struct mallinfo, __libc_mallinfo, void) { /* glibc's internal name */
  struct mallinfo2 info = mallinfo2();
  return (struct mallinfo){
      .arena = capped(info.arena),
      .ordblks = capped(info.ordblks),
      .hblks = capped(info.hblks),
      .hblkhd = capped(info.hblkhd),
      .uordblks = capped(info.uordblks),
      .fordblks = capped(info.fordblks),
      .keepcost = capped(info.keepcost),
  };
}

struct mallinfo mallinfo(void) EXPORT_ALIAS_OF(__libc_mallinfo);

/* glibc's bound for M_MXFAST: blocks up to there could go to its fast bins. */
enum { MXFAST_MAX_BYTES = 80 * sizeof(size_t) / 4 };

/* The parameters' purposes are served by other means, or do not exist here: docs/RELIABILITY.md has
 * the list. Returns 1, as glibc does for unknown ones too: programs give up at 0. Only
 * M_TRIM_THRESHOLD has an effect: negative, or the largest, it ends purging by age. */
EXPORT int mallopt(int parameter, int value) {
  if (parameter == M_MXFAST) return value >= 0 && (unsigned)value <= MXFAST_MAX_BYTES;
  if (parameter == M_TRIM_THRESHOLD)
    store_relaxed(&limits.keeps_free, value < 0 || value == INT_MAX);
  return 1;
}
int __libc_mallopt(int parameter, int value) EXPORT_ALIAS_OF(mallopt);

EXPORT void malloc_stats(void) { report_to_descriptor(report_as_malloc_stats, STANDARD_ERROR); }

/* Longer than the text with every class in it. */
enum { INFO_BYTES = 8192 };

/* As in glibc, other options are refused by the returned value alone. */
EXPORT int malloc_info(int options, FILE *stream) {
  struct text text;
  if (options != 0) return EINVAL;
  char *buffer = heap_malloc(INFO_BYTES); /* too large for a small thread's stack */
  if (!buffer) return -1;
  text_init(&text, buffer, INFO_BYTES);
  report_as_malloc_info(&text);
  int cancelling = os_cancel_off(); /* a stream's write may be a cancellation point */
  size_t written = fwrite(buffer, 1, text.length_bytes, stream);
  os_cancel_restore(cancelling);
  bool is_whole = written == text.wanted_bytes;
  heap_free(buffer);
  return is_whole ? 0 : -1;
}

#endif
