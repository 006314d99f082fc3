/* A pointer 64 bytes into a block of 200,000 in a heap that the program has made, to realloc. */
#include <stdlib.h>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

int main(void) {
  char *block = hak_heap_malloc(hak_heap_new("mine"), 200000);
  return realloc(hide(block + 64), 300000) != NULL;
}
