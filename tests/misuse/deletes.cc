// deletes NAME: deletes a block twice, or with a size that is not its own, and ends.
#include <new>

#include "misuse/hide.h"
#include "ways.h"

WAY(double_delete) {
  void *block = ::operator new(64);
  ::operator delete(hide(block));
  ::operator delete(hide(block), 64);
}

// One line for all of them.
WAY(sized_delete_of_larger) {
  for (int i = 0; i < 1000; i++) ::operator delete(hide(::operator new(200)), 64);
}

WAY(sized_delete_of_smaller) { ::operator delete(hide(::operator new(64)), 5000); }
WAY(sized_delete_of_mid) { ::operator delete(hide(::operator new(5000)), 64); }
WAY(sized_delete_of_big) { ::operator delete(hide(::operator new(3000000)), 64); }

WAY(sized_delete_of_aligned) {
  std::align_val_t alignment{64};
  ::operator delete(hide(::operator new(1000, alignment)), 100, alignment);
}

int main(int count, char **arguments) { return count == 2 && run_way(arguments[1]) ? 0 : 2; }
