#include "observe/crash.h"

#include "cache/heap.h"
#include "config/options.h"
#include "guard/guarded.h"
#include "os/os.h"
#include "report/report.h"
#include "stack/unwind.h"

static void tell(const struct os_crash *crash) {
  struct heap *heap = heap_of_thread;
  if (guarded_report_fault(crash) || crash->is_handled || !options.crash_line) return;
  /* In hakmem's own code, or in code called by a slow path. */
  if (crash->is_in_library || (heap_is_real(heap) && load_relaxed(&heap->is_busy)))
    report_line(
        "%s inside the allocator: instruction %#zx, address %#zx"
        " (the heap is corrupt, or a pointer given to it was wild)",
        crash->signal_name, crash->instruction, crash->address);
}

RESIDENT void crash_watch(void) {
  if (options.guard || window.hardened_class) unwind_prepare();
  if (!options.crash_line && !options.guard) return;
  os_watch_crashes(tell);
  if (options.guard) os_watch_first();
}
