#include "heap/library.h"

#include "base/scan.h"
#include "checked/checked.h"
#include "config/limits.h"
#include "config/options.h"
#include "foreign/operators.h"
#include "guard/guarded.h"
#include "map/metadata.h"
#include "os/lock.h"
#include "profile/control.h"
#include "report/report.h"

static enum misuse_action chosen_misuse_action(void) {
  static const char *const names[] = {
      [MISUSE_ABORT] = "abort", [MISUSE_WARN] = "warn", [MISUSE_IGNORE] = "ignore"};
  for (unsigned action = MISUSE_ABORT; action <= MISUSE_IGNORE; action++)
    if (scan_equals(options.on_misuse, names[action])) return (enum misuse_action)action;
  report_line("warning: HAKMEM_ON_MISUSE=\"%s\" is not abort, warn or ignore; ignored",
              options.on_misuse);
  return MISUSE_ABORT;
}

static void obey_options(void) {
  limits_read();
  misuse_action = chosen_misuse_action();
  profile_start();
  if (options.help) options_print_help();
}

static ATOMIC(uint32_t) stage;
enum { NEW, WITHOUT_OPTIONS, WITH_OPTIONS, READY };
static struct lock start_lock = {.rank = LOCK_RANK_START};

/* Under the lock. */
RESIDENT static uint32_t read_options(void) {
  uint32_t now = load_relaxed(&stage);
  if (now != NEW) return now;
  now = options_read(os_environment()) ? WITH_OPTIONS : WITHOUT_OPTIONS;
  if (now == WITH_OPTIONS) obey_options(); /* the defaults need no action */
  checked_init();
  store_relaxed(&stage, now);
  return now;
}

RESIDENT bool library_has_options(void) {
  lock_take(&start_lock, &stray_counters);
  uint32_t now = read_options();
  lock_give(&start_lock);
  return now == WITH_OPTIONS;
}

/* Under the lock. Work left undone by a refusal is done by the next call: it begins where this one
 * stopped. */
static bool start_library(void (*end_of_thread)(void *)) {
  if (read_options() == READY) return true;
  if (!load_relaxed(&window.chunk_limit) && !window_init(options.window_gib << 30)) return false;
  if (!metadata_start()) return false;
  os_thread_exit_init(end_of_thread);
  if (options.guard && !guarded_start(&stray_counters))
    report_line("warning: HAKMEM_GUARD=1: no address space; no block is guarded");
  store_release(&stage, READY);
  return true;
}

RESIDENT bool library_ready(void (*end_of_thread)(void *)) {
  if (LIKELY(load_acquire(&stage) == READY)) return true; /* pairs with start_library */
  operators_of_others(); /* not under the lock: it may wait for the dynamic linker's */
  lock_take(&start_lock, &stray_counters);
  bool is_ready = start_library(end_of_thread);
  lock_give(&start_lock);
  return is_ready;
}

void library_after_fork(void) { lock_reset_in_child(&start_lock); }
