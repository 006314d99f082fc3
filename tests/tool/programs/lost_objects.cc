// lost_objects: C++ objects that nothing points to any more, and some that are kept; then "ready" and waits.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <vector>

namespace shop {
struct Item {
  virtual ~Item() = default;
  virtual int price() const { return 1; }
  long number = 0;
};
struct Order : Item {
  long lines[12] = {};
};
template <class T>
struct Basket : Item {
  T things[40] = {};
};
struct Kept : Item {
  long lines[30] = {};
};
}  // namespace shop

std::vector<std::shared_ptr<shop::Item>> all;
shop::Item *volatile sink;

__attribute__((noinline)) static void lose() {
  for (int i = 0; i < 1000; i++) sink = new shop::Order;
  for (int i = 0; i < 500; i++) sink = new shop::Basket<int>;
  sink = nullptr;
}

int main() {
  for (int i = 0; i < 2000; i++) all.push_back(std::make_shared<shop::Kept>());
  lose();
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
