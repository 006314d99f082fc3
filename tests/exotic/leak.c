/* Loses a block and writes one byte beyond another: for valgrind to find. */
#include <stdlib.h>

int main(void) {
  volatile char *block = malloc(100), *lost = malloc(1000);
  lost[0] = 1;
  lost = NULL;
  block[100] = 1;
  free((void *)block);
  return lost != NULL;
}
