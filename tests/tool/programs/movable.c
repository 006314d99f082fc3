/* Every second block is freed; then the others are moved, and free memory is purged. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "steps.h"

/* Weak: the library is preloaded. */
#pragma weak hak_worth_moving
#pragma weak hak_move_begin
#pragma weak hak_move_end
#pragma weak hak_purge

enum { COUNT = 80000, BYTES = 500 };

static void *blocks[COUNT];

static void *written(void) {
  void *block = malloc(BYTES);
  if (!block) abort();
  return memset(block, 1, BYTES);
}

int main(void) {
  unsigned char answer;
  for (int i = 0; i < COUNT; i++) blocks[i] = written();
  for (int i = 0; i < COUNT; i += 2) free(blocks[i]);
  step("sparse");
  if (!hak_move_begin()) abort();
  for (int i = 1; i < COUNT; i += 2) {
    void *old = blocks[i];
    if (!hak_worth_moving(&old, 1, &answer)) continue;
    blocks[i] = written();
    free(old);
  }
  hak_move_end();
  hak_purge(true);
  step("moved");
  return 0;
}
