// Blocks of 200 bytes, deleted as ones of 64: one line for all of them.
#include <new>

#include "misuse/hide.h"

int main() {
  for (int i = 0; i < 1000; i++) ::operator delete(hide(::operator new(200)), 64);
}
