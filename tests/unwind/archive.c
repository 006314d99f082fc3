/* archive.c: linked with libhakmem.a, frees a block twice; the report's stacks begin here, not in
 * hakmem. */
#include <stdlib.h>

void *make(void);
void give(void *block);

__attribute__((noinline)) void *make(void) {
  void *volatile block = malloc(33);
  return block;
}

static void *volatile given;

__attribute__((noinline)) void give(void *block) {
  free(block);
  given = block;
}

int main(void) {
  void *block = make();
  give(block);
  give(block);
  return 0;
}
