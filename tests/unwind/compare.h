/* compare.h: unwind_stack against the C library's backtrace, frame by frame.
 *
 * Both are called in one function: its own frame, the first, they see at different calls. */
#ifndef TESTS_UNWIND_COMPARE_H
#define TESTS_UNWIND_COMPARE_H

#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
size_t unwind_stack(uintptr_t *frames, size_t max, bool *is_complete);
}
#else
#include "stack/unwind.h"
#endif

enum { FRAMES_MAX = 400 };

struct stacks {
  uintptr_t ours[FRAMES_MAX];
  void *theirs[FRAMES_MAX];
  size_t our_count, their_count;
  bool is_complete;
};

/* Ours may go on where theirs ends for want of tables: frame pointers lead further. */
static inline bool stacks_agree(const struct stacks *stacks) {
  if (stacks->our_count < stacks->their_count) return false;
  for (size_t frame = 1; frame < stacks->their_count; frame++)
    if (stacks->ours[frame] != (uintptr_t)stacks->theirs[frame]) return false;
  return true;
}

static inline bool stacks_are_equal(const struct stacks *stacks) {
  return stacks_agree(stacks) && stacks->our_count == stacks->their_count;
}

__attribute__((noinline, unused)) static void stacks_take(struct stacks *stacks) {
  stacks->our_count = unwind_stack(stacks->ours, FRAMES_MAX, &stacks->is_complete);
  stacks->their_count = (size_t)backtrace(stacks->theirs, FRAMES_MAX);
}

static inline void stacks_print(const struct stacks *stacks, const char *where) {
  size_t count = stacks->our_count > stacks->their_count ? stacks->our_count : stacks->their_count;
  fprintf(stderr, "%s: %zu frames, %scomplete; backtrace has %zu\n", where, stacks->our_count,
          stacks->is_complete ? "" : "in", stacks->their_count);
  for (size_t frame = 0; frame < count; frame++)
    fprintf(stderr, "  %016lx %016lx\n",
            frame < stacks->our_count ? (unsigned long)stacks->ours[frame] : 0,
            frame < stacks->their_count ? (unsigned long)stacks->theirs[frame] : 0);
}

static unsigned long stacks_compared;

/* Ends the program where they differ, or the stack's start is not found. */
__attribute__((noinline, unused)) static void compare(const char *where) {
  static __thread struct stacks stacks;
  stacks_take(&stacks);
  bool is_cut = stacks.their_count == FRAMES_MAX;
  __atomic_fetch_add(&stacks_compared, 1, __ATOMIC_RELAXED);
  if (stacks_are_equal(&stacks) && stacks.is_complete != is_cut) return;
  stacks_print(&stacks, where);
  _Exit(1);
}

#endif
