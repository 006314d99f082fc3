/* Prints the version of the library that is loaded. */
#include <stdio.h>

#include "hakmem/hakmem.h"

int main(void) {
  printf("%s\n", hak_version());
  return 0;
}
