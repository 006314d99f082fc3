// A caller compiled with -fno-exceptions: allocation works, nothrow forms return nullptr, and a
// plain new that fails ends the program (test_operator_new.py expects the abort) but never returns.
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "api/check.h"

static volatile size_t impossible_bytes = PTRDIFF_MAX;

int main() {
  auto text = std::make_unique<std::string>(1000, 'x');
  CHECK(text->size() == 1000);
  int *numbers = new (std::nothrow) int[1000];
  CHECK(numbers != nullptr);
  delete[] numbers;
  CHECK(::operator new(impossible_bytes, std::nothrow) == nullptr);
  puts("before");
  fflush(stdout);
  void *returned = ::operator new(impossible_bytes);
  CHECK_MSG(false, "new returned %p", returned);
}
