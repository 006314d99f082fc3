// The new_handler is called again and again until it helps, gives up, throws or is removed.
#include <cstdint>
#include <new>

#include "api/check.h"

static int calls;
static volatile size_t impossible_bytes = PTRDIFF_MAX;
static const std::align_val_t wide{4096};

static void give_up_after_three() {
  if (++calls == 3) std::set_new_handler(nullptr);
}

struct Gave_up {};

static void throw_on_second() {
  if (++calls == 2) throw Gave_up();
}

template <typename Thrown, typename Allocate>
static void check_throws(std::new_handler handler, int expected_calls, Allocate allocate) {
  calls = 0;
  std::set_new_handler(handler);
  bool caught = false;
  try {
    allocate();
  } catch (const Thrown &) {
    caught = true;
  }
  CHECK(caught && calls == expected_calls);
  std::set_new_handler(nullptr);
}

template <typename Allocate>
static void check_gives_up(Allocate allocate) {
  check_throws<std::bad_alloc>(give_up_after_three, 3, allocate);
}

// The nothrow forms call it too, and turn its bad_alloc into nullptr.
template <typename Allocate>
static void check_nothrow(Allocate allocate) {
  calls = 0;
  std::set_new_handler(give_up_after_three);
  CHECK(allocate() == nullptr && calls == 3);
  calls = 0;
  std::set_new_handler([] {
    calls++;
    throw std::bad_alloc();
  });
  CHECK(allocate() == nullptr && calls == 1);
  std::set_new_handler(nullptr);
}

int main() {
  check_gives_up([] { return ::operator new(impossible_bytes); });
  check_gives_up([] { return ::operator new[](impossible_bytes); });
  check_gives_up([] { return ::operator new(impossible_bytes, wide); });
  check_gives_up([] { return ::operator new[](impossible_bytes, wide); });
  check_throws<Gave_up>(throw_on_second, 2, [] { return ::operator new(impossible_bytes); });
  check_throws<Gave_up>(throw_on_second, 2, [] { return ::operator new(impossible_bytes, wide); });
  check_nothrow([] { return ::operator new(impossible_bytes, std::nothrow); });
  check_nothrow([] { return ::operator new[](impossible_bytes, std::nothrow); });
  check_nothrow([] { return ::operator new(impossible_bytes, wide, std::nothrow); });
  check_nothrow([] { return ::operator new[](impossible_bytes, wide, std::nothrow); });

  calls = 0;
  std::set_new_handler(give_up_after_three);  // not called when there is memory
  ::operator delete(::operator new(100));
  CHECK(calls == 0);
  return 0;
}
