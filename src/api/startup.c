/* startup.c: what happens when the library is loaded and when the process ends.  Allocation works
 * before the one and after the other. */
#include "heap/batch.h"
#include "heap/life.h"
#include "heap/scavenge.h"
#include "observe/reports.h"

RUN_AT_LOAD static void at_load(void) {
  if (!library_ready()) return;
  heaps_at_fork();
  scavenge_start_helper();
}

/* Blocks of the main thread's magazines go to their slabs, where a double free shows. */
RUN_AT_EXIT static void at_exit(void) {
  struct heap *heap = heap_of_thread;
  if (heap_is_real(heap)) batch_flush_all(heap);
  reports_at_exit();
}
