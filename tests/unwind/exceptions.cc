// exceptions.cc: stacks while C++ unwinds: in destructors, in catch blocks, in what they call, in threads.
//
// Prints how many were compared with backtrace.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "compare.h"

namespace {

struct Watch {
  explicit Watch(const char *name) : name(name) { compare(name); }
  ~Watch() { compare(name); }
  const char *name;
};

[[gnu::noinline]] int fall(int depth) {
  Watch watch("a destructor");
  std::string text(static_cast<size_t>(depth) * 10, 'x');
  if (depth == 0) throw std::runtime_error("bottom");
  return fall(depth - 1) + static_cast<int>(text.size());
}

struct Catches {
  ~Catches() {
    try {
      fall(2);
    } catch (const std::exception &) {
      compare("a catch block in a destructor");
    }
  }
};

[[gnu::noinline]] void nested() {
  Catches catches;
  fall(3);
}

[[gnu::noinline]] void rethrow() {
  try {
    fall(3);
  } catch (...) {
    compare("a catch block");
    throw;
  }
}

void through_callbacks() {
  std::vector<int> numbers{4, 2, 8, 1};
  std::sort(numbers.begin(), numbers.end(), [](int left, int right) {
    compare("a lambda");
    return left < right;
  });
  std::function<void(int)> again = [&again](int depth) {
    compare("a std::function");
    if (depth) again(depth - 1);
  };
  again(5);
}

void expect(void (*function)()) {
  try {
    function();
  } catch (const std::runtime_error &) {
    compare("the last catch block");
  }
}

void all() {
  expect(nested);
  expect(rethrow);
  through_callbacks();
}

Watch before_main("a static object");

}  // namespace

int main() {
  all();
  std::thread thread(all);
  thread.join();
  printf("%lu stacks are equal\n", stacks_compared);
}
