// An aligned block of 1,000 bytes, deleted as one of 100.
#include <new>

#include "misuse/hide.h"

int main() {
  std::align_val_t alignment{64};
  ::operator delete(hide(::operator new(1000, alignment)), 100, alignment);
}
