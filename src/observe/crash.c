#include "observe/crash.h"

#include "config/options.h"
#include "heap/heap.h"
#include "os/os.h"
#include "report/report.h"

/* Inside: on our own code, or in something that a slow path has called. */
static void look(const struct os_crash *crash) {
  struct heap *heap = heap_of_thread;
  bool is_in_slow_path = heap_is_real(heap) && load_relaxed(&heap->is_busy);
  if (crash->is_in_library || is_in_slow_path)
    report_crash(crash->signal_name, crash->instruction, crash->address);
}

void crash_watch(void) {
  if (options.crash_line) os_watch_crashes(look);
}
