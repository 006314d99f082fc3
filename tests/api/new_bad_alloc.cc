// Without a new_handler a failed new throws bad_alloc, the nothrow forms return nullptr.
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "api/check.h"

static const std::align_val_t wide{4096};

template <typename Allocate>
static void check_throws(size_t size, Allocate allocate) {
  bool caught = false;
  try {
    allocate();
  } catch (const std::bad_alloc &error) {
    caught = std::string(error.what()) == "std::bad_alloc";
  }
  CHECK_MSG(caught, "size %zx", size);
}

static void check_size(size_t size) {
  check_throws(size, [=] { return ::operator new(size); });
  check_throws(size, [=] { return ::operator new[](size); });
  check_throws(size, [=] { return ::operator new(size, wide); });
  check_throws(size, [=] { return ::operator new[](size, wide); });
  CHECK(::operator new(size, std::nothrow) == nullptr);
  CHECK(::operator new[](size, std::nothrow) == nullptr);
  CHECK(::operator new(size, wide, std::nothrow) == nullptr);
  CHECK(::operator new[](size, wide, std::nothrow) == nullptr);
}

int main() {
  check_size(PTRDIFF_MAX);
  check_size(size_t(PTRDIFF_MAX) + 1);
  check_size(SIZE_MAX - 4096);
  check_size(SIZE_MAX);
  std::vector<char> after_failure(100000, 'x');  // and life goes on
  CHECK(after_failure[99999] == 'x');
  return 0;
}
