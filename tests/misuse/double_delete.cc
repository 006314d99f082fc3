// The same, said in C++.
#include <new>

#include "misuse/hide.h"

int main() {
  void *block = ::operator new(64);
  ::operator delete(hide(block));
  ::operator delete(hide(block), 64);
}
