/* corrupt.c: registers and stacks that hold anything.  Nothing may crash, and a stack whose way is
 * lost must not be called complete.
 *
 * Built with frame pointers, on x86-64. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "frame_pointer.h"
#include "stack/unwind.h"

#include <stdio.h>
#include <stdlib.h>

enum { FRAMES_MAX = 200, ROUNDS = 20000, PAGE = 4096, STACK_PAGES = 8 };

static unsigned long seen, complete;

static void look(void) {
  uintptr_t frames[FRAMES_MAX];
  bool is_complete;
  if (unwind_stack(frames, FRAMES_MAX, &is_complete) == 0) abort();
  seen++;
  complete += is_complete;
}

static unsigned long random_next(void) {
  static unsigned long state = 88172645463325252;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* What is found where nothing is right: numbers, and addresses of the stack, the code, the data, of
 * nothing, of the last and the first word of a mapping. */
static unsigned long anything(const char *map) {
  static char data[64];
  unsigned long number = random_next(), choice = number % 11, small = number >> 32 & 0xfff;
  unsigned long here = (unsigned long)&number;
  const unsigned long values[] = {number,
                                  small,
                                  here + small * 8,
                                  here - small * 8,
                                  here + small,
                                  (unsigned long)look,
                                  (unsigned long)data,
                                  (unsigned long)map + PAGE * STACK_PAGES - 8,
                                  (unsigned long)map + PAGE * STACK_PAGES - 16,
                                  (unsigned long)map + PAGE * STACK_PAGES + small,
                                  ~small};
  return values[choice];
}

/* The words that a return needs are others while it is looked at. */
__attribute__((noinline)) static void smash(const char *map) {
  volatile unsigned long *frame = __builtin_frame_address(0);
  unsigned long saved[2] = {frame[0], frame[1]};
  if (random_next() % 2) frame[0] = anything(map);
  if (random_next() % 2) frame[1] = anything(map);
  look();
  frame[0] = saved[0];
  frame[1] = saved[1];
}

static char *map;
static ucontext_t outside, inside;

static void all(void) {
  for (int round = 0; round < ROUNDS; round++) {
    call_with_frame_pointer(anything(map) | 1, look);
    call_with_frame_pointer(anything(map), look);
    smash(map);
  }
}

static void on_signal(int signal) {
  (void)signal;
  all();
}

int main(void) {
  /* A stack of the program's own, with closed pages around it. */
  size_t bytes = PAGE * (STACK_PAGES + 2);
  map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return 1;
  map += PAGE;
  mprotect(map, PAGE * STACK_PAGES, PROT_READ | PROT_WRITE);
  for (int chain = 8; chain < PAGE; chain += 8) memcpy(map + chain, &map, sizeof map);
  for (int round = 0; round < 1000; round++) call_with_frame_pointer(random_next() | 1, look);
  if (complete) return 1; /* no frame lies at an odd address */
  all();
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  getcontext(&inside);
  inside.uc_stack.ss_sp = map;
  inside.uc_stack.ss_size = PAGE * STACK_PAGES;
  inside.uc_link = &outside;
  makecontext(&inside, all, 0);
  swapcontext(&outside, &inside);
  printf("%lu stacks, %lu of them complete\n", seen, complete);
  return 0;
}
