/* A program without operators of its own that takes the addresses of all: built for a fixed
 * address, it has a stub for each, by which hakmem finds them, too. */
#include <cstdlib>
#include <new>

template <typename Function>
static void take(Function function) {
  Function volatile taken = function;
  if (!taken) abort();
}

using plain_new = void *(*)(std::size_t);
using aligned_new = void *(*)(std::size_t, std::align_val_t);
using plain_delete = void (*)(void *);
using aligned_delete = void (*)(void *, std::align_val_t);

struct alignas(64) aligned {
  char bytes[64];
};

template <typename Object>
static void come_and_go(std::size_t count) {
  delete new Object;
  delete new (std::nothrow) Object;
  delete[] new Object[count];
  delete[] new (std::nothrow) Object[count];
  ::operator delete(new Object, std::nothrow);
  ::operator delete[](new Object[count], std::nothrow);
}

int main() {
  take<plain_new>(&::operator new);
  take<plain_new>(&::operator new[]);
  take<aligned_new>(&::operator new);
  take<aligned_new>(&::operator new[]);
  take<plain_delete>(&::operator delete);
  take<plain_delete>(&::operator delete[]);
  take<aligned_delete>(&::operator delete);
  take<aligned_delete>(&::operator delete[]);
  for (std::size_t count = 1; count < 5000; count += count / 2 + 1) {
    come_and_go<int>(count);
    come_and_go<aligned>(count);
  }
}
