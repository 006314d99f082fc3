/* hook.c: preloaded into any program, compares unwind_stack with backtrace at one in HOOK_EVERY
 * calls of malloc.
 *
 * At the end of each process it adds a line to the file HOOK_REPORT: stacks, different ones,
 * incomplete ones; with HOOK_PRINT it prints the stacks as well. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

extern void *__libc_malloc(size_t bytes);

static __thread struct stacks *stacks __attribute__((tls_model("initial-exec")));
static __thread bool is_busy __attribute__((tls_model("initial-exec")));
static unsigned long calls, seen, different, incomplete, every = 1;
static bool prints;

/* backtrace also sees the frames of this library, which unwind_stack leaves out: up to the first
 * that it has. */
static void leave_out_own(void) {
  size_t own = 0;
  while (own < stacks->their_count && (uintptr_t)stacks->theirs[own] != stacks->ours[0]) own++;
  if (own == stacks->their_count) return;
  stacks->their_count -= own;
  memmove(stacks->theirs, stacks->theirs + own, stacks->their_count * sizeof *stacks->theirs);
}

static void look(void) {
  if (!stacks) stacks = __libc_malloc(sizeof *stacks);
  stacks_take(stacks);
  bool is_cut = stacks->their_count == FRAMES_MAX;
  leave_out_own();
  bool is_incomplete = !stacks->is_complete && !is_cut, is_different = !stacks_agree(stacks);
  __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&incomplete, is_incomplete, __ATOMIC_RELAXED);
  __atomic_fetch_add(&different, is_different && !is_cut, __ATOMIC_RELAXED);
  if (prints && (is_incomplete || is_different)) stacks_print(stacks, "malloc");
}

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
  unsigned long call = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  if (call % every == 0 && !is_busy) {
    is_busy = true;
    look();
    is_busy = false;
  }
  return __libc_malloc(bytes);
}

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("HOOK_EVERY");
  if (text) every = strtoul(text, NULL, 10);
  prints = getenv("HOOK_PRINT") != NULL;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("HOOK_REPORT");
  char line[100];
  int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  int bytes = snprintf(line, sizeof line, "%lu %lu %lu\n", seen, different, incomplete);
  is_busy = true;
  if (file >= 0 && write(file, line, (size_t)bytes) != bytes) abort();
}
