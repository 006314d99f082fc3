/* startup.c: runs when the library is loaded and when the process ends.  Allocation works before
 * the one and after the other. */
#include "api/override_threads.h"
#include "cache/caches.h"
#include "config/options.h"
#include "heap/fork.h"
#include "heap/library.h"
#include "heap/thread.h"
#include "observe/crash.h"
#include "observe/reports.h"
#include "profile/control.h"
#include "reclaim/helper.h"
#include "slab/adopt.h"

/* Linked with the archive, or loaded late, the library does not. */
static bool sees_threads_start(void) { return &pthread_create == &hak_start_thread; }

RUN_AT_LOAD static void at_load(void) {
  os_note_processors(); /* before the program chooses some for its threads */
  os_note_modules(sees_threads_start());
  /* Otherwise the first allocation does it: many small processes have none. */
  if (library_has_options() && !heaps_ready()) return;
  if (!sees_threads_start()) heaps_at_fork();
  if (UNLIKELY(*options.keeper)) { /* else none of those pages is touched */
    heaps_at_fork();
    profile_keep();
  }
  reports_at_load();
  crash_watch();
  helper_start_when_worth();
}

/* Blocks of this thread's magazines go to their slabs and meet those that others freed, as in the
 * slabs of ended threads: a double free that was not noticed yet is detected now. */
static void check_own_blocks(struct heap *heap) {
  if (!heap_is_real(heap)) return;
  heap_enter(heap);
  caches_empty(heap);
  heap_leave(heap);
  if (!os_is_multi_threaded()) return; /* there are no others */
  owners_collect_ended();
  latch_take(&heap->owner);
  owner_collect_all(&heap->owner);
  latch_give(&heap->owner);
}

RUN_AT_EXIT static void at_exit(void) {
  check_own_blocks(heap_of_thread);
  reports_at_exit();
}
