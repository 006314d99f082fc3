/* A program that replaces operator new and delete by malloc and free, but not the sized and the
 * array forms: those come from whoever else has them.  NEW_ONLY: nor delete, which is to free what
 * new has made larger than it was asked to. */
#include <stdlib.h>

#include <new>

#include "misuse/hide.h"

#ifdef NEW_ONLY
void *operator new(size_t size) { return malloc(size + 200); }
#else
void *operator new(size_t size) { return malloc(size); }
void operator delete(void *block) noexcept { free(block); }
#endif

int main() {
  for (size_t size = 1; size < 100000; size = size * 3 + 1) {
    ::operator delete(hide(::operator new(size)), size);
    ::operator delete(hide(::operator new(size)));
    ::operator delete[](hide(::operator new[](size)));
  }
  return 0;
}
