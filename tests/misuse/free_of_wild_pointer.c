/* An address that no process can have (not canonical). */
#include <stdint.h>
#include <stdlib.h>

#include "misuse/hide.h"

int main(void) {
  free(hide((void *)(uintptr_t)0xdeadbeefdeadbee0u));
  return 0;
}
