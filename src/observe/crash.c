#include "observe/crash.h"

#include "cache/heap.h"
#include "config/options.h"
#include "heap/object.h"
#include "os/os.h"
#include "report/report.h"
#include "stack/unwind.h"

/* The stack of the fault; around a guarded block also those of its malloc and free. */
static void tell_stacks(const struct misuse *misuse) {
  struct call_stack here;
  if (misuse->block->tell_stacks) {
    misuse->block->tell_stacks(misuse);
  } else if (misuse_may_walk && misuse_may_walk()) {
    call_stack_note(&here, misuse->caller);
    report_stack(misuse->verb, &here);
  }
}

/* False where no block, live or free, lies between closed pages (checked/checked_range.h), and
 * inside a live one, whose pages only the program itself can have closed. */
static bool tell_of_block(const struct os_crash *crash) {
  static const char *const accesses[] = {"access", "read", "write"};
  struct object object;
  uintptr_t address = crash->address;
  enum object_kind kind = object_find(address, false, &object);
  if (kind == OBJECT_LIVE || !object.base || !map_entry_is_closed(object.entry)) return false;
  struct block_description block = object_describe(&object);
  struct misuse misuse = {"use-after-free", accesses[crash->access], address,
                          &block,           crash->instruction,      false};
  uintptr_t end = object.base + object.bytes;
  bool is_before = address < object.base, is_after = address >= end;
  if (map_entry_is_live(object.entry))
    misuse.kind = is_before ? "heap-buffer-underflow" : "heap-buffer-overflow";
  report_line("%s: %s at %#zx, %zu bytes %s the block of %zu bytes at %#zx (%s)", misuse.kind,
              misuse.verb, address,
              is_before  ? object.base - address
              : is_after ? address - end
                         : address - object.base,
              is_before  ? "before"
              : is_after ? "after"
                         : "into",
              object.bytes, object.base, block.tier);
  tell_stacks(&misuse);
  return true;
}

static void tell(const struct os_crash *crash) {
  struct heap *heap = heap_of_thread;
  if (tell_of_block(crash) || crash->is_handled || !options.crash_line) return;
  /* In hakmem's own code, or in code called by a slow path. */
  if (crash->is_in_library || (heap_is_real(heap) && load_relaxed(&heap->is_busy)))
    report_line(
        "%s inside the allocator: instruction %#zx, address %#zx"
        " (the heap is corrupt, or a pointer given to it was wild)",
        crash->signal_name, crash->instruction, crash->address);
}

RESIDENT void crash_watch(void) {
  if (options.guard || window.hardened_bit) unwind_prepare();
  if (!options.crash_line && !options.guard) return;
  os_watch_crashes(tell);
  if (options.guard) os_watch_first();
}
