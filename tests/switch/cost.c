/* Takes and gives blocks, each kind in functions of its own, for callgrind to count
 * (test_cost.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

enum { BLOCKS = 5000, SMALL_BYTES = 64, MID_BYTES = 4096 };

static void *blocks[BLOCKS];
static void *(*operator_new)(size_t);
static void (*operator_delete)(void *);

#define KIND(name, take, give)                                              \
  __attribute__((noinline)) static void take_##name(void) {                 \
    for (unsigned index = 0; index < BLOCKS; index++) blocks[index] = take; \
  }                                                                         \
  __attribute__((noinline)) static void give_##name(void) {                 \
    for (unsigned index = 0; index < BLOCKS; index++) give(blocks[index]);  \
  }

KIND(malloc, malloc(SMALL_BYTES), free)
KIND(calloc, calloc(1, SMALL_BYTES), free)
KIND(realloc, realloc(NULL, SMALL_BYTES), free)
KIND(aligned, aligned_alloc(SMALL_BYTES, SMALL_BYTES), free)
KIND(new, operator_new(SMALL_BYTES), operator_delete)
KIND(mid, malloc(MID_BYTES), free)

int main(void) {
  operator_new = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
  operator_delete = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZdlPv");
  if (!operator_new || !operator_delete) return 1;
#define RUN(name) (take_##name(), give_##name())
  RUN(malloc);
  RUN(calloc);
  RUN(realloc);
  RUN(aligned);
  RUN(new);
  RUN(mid);
  return 0;
}
