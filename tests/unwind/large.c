/* large.c: 1,024 functions that call each other at random, and a mebibyte of constants.  Each stack
 * begins with the callers that the functions themselves have noted, as far as it goes.
 *
 * Prints how many stacks were incomplete, and how many complete; in the end all are. */
#include <stdio.h>
#include <stdlib.h>

#include "stack/unwind.h"

enum { FUNCTIONS = 1024, DEPTH = 12, FRAMES_MAX = 100, STACKS = 4000 };

static uintptr_t callers[DEPTH + 1];
static unsigned long incomplete, complete;
static unsigned long long state = 88172645463325252;

static unsigned random_next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return (unsigned)((state ^= state << 17) >> 32);
}

__attribute__((noinline)) static int look(void) {
  uintptr_t frames[FRAMES_MAX];
  bool is_complete;
  size_t count = unwind_stack(frames, FRAMES_MAX, &is_complete);
  /* Here, the function that called this, and then what that one and its callers have noted. */
  for (size_t frame = 0; frame + 2 < count && frame < DEPTH; frame++)
    if (frames[frame + 2] != callers[frame]) abort();
  if (is_complete && count <= DEPTH + 2) abort();
  complete += is_complete;
  incomplete += !is_complete;
  return (int)count;
}

typedef int function(unsigned depth);
extern function *const functions[FUNCTIONS];

/* Frames of different sizes. */
#define FUNCTION(number)                                                           \
  __attribute__((noinline)) static int call_##number(unsigned depth) {             \
    volatile char room[8 + (0x##number % 61) * 8];                                 \
    room[0] = (char)depth;                                                         \
    callers[depth] = (uintptr_t)__builtin_return_address(0);                       \
    int result = depth ? functions[random_next() % FUNCTIONS](depth - 1) : look(); \
    return result + room[0];                                                       \
  }
#define SIXTEEN(do, n)                                                                        \
  do                                                                                          \
  (n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7) do(n##8) do(n##9) do( \
      n##a) do(n##b) do(n##c) do(n##d) do(n##e) do(n##f)
#define FUNCTIONS_OF(n) SIXTEEN(FUNCTION, n)
#define NAME(number) call_##number,
#define NAMES_OF(n) SIXTEEN(NAME, n)
#define SIXTEEN_TIMES(do, n)                                                                  \
  do                                                                                          \
  (n##0) do(n##1) do(n##2) do(n##3) do(n##4) do(n##5) do(n##6) do(n##7) do(n##8) do(n##9) do( \
      n##a) do(n##b) do(n##c) do(n##d) do(n##e) do(n##f)
#define ALL(do) SIXTEEN_TIMES(do, 0) SIXTEEN_TIMES(do, 1) SIXTEEN_TIMES(do, 2) SIXTEEN_TIMES(do, 3)

ALL(FUNCTIONS_OF)
function *const functions[FUNCTIONS] = {ALL(NAMES_OF)};

/* Not all of it is 0: it lies before the tables. */
static const unsigned constants[1 << 18] = {1, 2, 3, [1 << 17] = 24, 0, 1, [(1 << 18) - 1] = 5};

int main(void) {
  int sum = (int)constants[random_next() % (1 << 18)];
  for (unsigned stack = 0; stack < STACKS; stack++) {
    unsigned long before = incomplete;
    sum += functions[random_next() % FUNCTIONS](DEPTH - 1);
    if (incomplete > before && stack > STACKS / 2) return 1;
  }
  fprintf(sum == -1 ? stderr : stdout, "%lu incomplete, %lu complete\n", incomplete, complete);
  return 0;
}
