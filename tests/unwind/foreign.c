/* foreign.c: memory beside a thread's stack that is none of it: stacks that the program makes, and
 * unmaps while the thread runs. What was read of them once must not be taken for the thread's own,
 * nor the first thread's stack for anybody's.
 *
 * x86-64.  Prints how many stacks were taken; ends with 77 where the place that it needs is
 * taken. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "frame_pointer.h"
#include "stack/unwind.h"

enum { PAGE = 4096, STACK_BYTES = 32 * PAGE, MADE_BYTES = 16 * PAGE, FRAMES_MAX = 100 };
enum { NO_PLACE = 77 };

static unsigned long seen;

static void look(void) {
  uintptr_t frames[FRAMES_MAX];
  bool is_complete;
  if (unwind_stack(frames, FRAMES_MAX, &is_complete) == 0) abort();
  seen++;
}

/* ---- a stack that the program makes ---------------------------------------------------------- */

static ucontext_t outside, inside;
static unsigned long wrong_frame;

static void look_twice(void) {
  look();
  if (wrong_frame) call_with_frame_pointer(wrong_frame, look);
}

static void run_on(char *stack, size_t bytes, unsigned long frame) {
  wrong_frame = frame;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = bytes;
  inside.uc_link = &outside;
  makecontext(&inside, look_twice, 0);
  swapcontext(&outside, &inside);
}

/* Two below one another, right below `top`; the upper one is unmapped before the lower one's frame
 * pointer leads there. */
static void go_below(char *top) {
  char *upper = top - MADE_BYTES, *lower = upper - MADE_BYTES;
  run_on(upper, MADE_BYTES, 0);
  if (munmap(upper, MADE_BYTES) != 0) abort();
  for (unsigned page = 0; page < MADE_BYTES / PAGE; page++)
    run_on(lower, MADE_BYTES, (unsigned long)upper + page * PAGE);
  look();
}

static char *map_at(char *place, size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED_NOREPLACE : 0);
  char *mapped = mmap(place, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED && place) exit(NO_PLACE);
  if (mapped == MAP_FAILED) abort();
  return mapped;
}

/* ---- threads whose stacks have no guard ------------------------------------------------------ */

static char *stack;

static void run_thread(void *(*body)(void *)) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0) abort();
  if (pthread_create(&thread, &attributes, body, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static void *below_body(void *argument) {
  look();
  go_below(stack);
  return argument;
}

static void below(void) {
  stack = map_at(NULL, 2 * MADE_BYTES + STACK_BYTES) + 2 * MADE_BYTES;
  run_thread(below_body);
}

/* Of the mapping that has an address; 0 without one. */
static unsigned long mapping_of(unsigned long address, unsigned long *bytes) {
  unsigned long begin = 0, end = 0, found = 0;
  char line[1024];
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) abort();
  while (!found && fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && address >= begin && address < end)
      found = begin;
  fclose(maps);
  *bytes = end - begin;
  return found;
}

static char *first_stack; /* it grows by what is read below it */

static void *above_body(void *argument) {
  unsigned long before, after;
  if (!mapping_of((unsigned long)first_stack, &before)) abort();
  for (unsigned turn = 0; turn < 10; turn++) run_on(stack + STACK_BYTES, MADE_BYTES, 0);
  if (!mapping_of((unsigned long)first_stack, &after) || after != before) abort();
  return argument;
}

static void above(void) {
  char here;
  first_stack = &here;
  stack = map_at(NULL, STACK_BYTES + MADE_BYTES);
  run_thread(above_body);
}

/* ---- the first thread, whose data lies in no stack ------------------------------------------- */

static __thread int own_data;

static void first(void) {
  unsigned long bytes;
  char *begin = (char *)mapping_of((unsigned long)&own_data, &bytes);
  map_at(begin - 2 * MADE_BYTES, 2 * MADE_BYTES);
  go_below(begin);
}

int main(int count, char **arguments) {
  const char *which = count > 1 ? arguments[1] : "";
  if (strcmp(which, "below") == 0) below();
  if (strcmp(which, "above") == 0) above();
  if (strcmp(which, "first") == 0) first();
  printf("%lu stacks\n", seen);
  return seen ? 0 : 1;
}
