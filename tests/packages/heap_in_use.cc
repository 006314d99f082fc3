/* heap_in_use.cc: hakmem::heap_in_use does what its comment says. */
#include <hakmem/hakmem.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

static hak_heap *heap_of_new_block() {
  const std::unique_ptr<long> block(new long(1));
  return hak_heap_of(block.get());
}

static void scopes_nest() {
  hakmem::heap first("first"), second("second");
  std::vector<std::string> names;
  {
    const hakmem::heap_in_use outer(first);
    names.emplace_back(100, 'a');
    CHECK(hak_heap_of(names.data()) == first.get());
    CHECK(hak_heap_of(names[0].data()) == first.get());
    {
      const hakmem::heap_in_use inner(second.get());
      CHECK(heap_of_new_block() == second.get());
      const hakmem::heap_in_use own(nullptr);
      CHECK(heap_of_new_block() == nullptr);
    }
    CHECK(heap_of_new_block() == first.get());
    std::thread([] { CHECK(heap_of_new_block() == nullptr); }).join();
    names.clear();
    names.shrink_to_fit();
  }
  CHECK(heap_of_new_block() == nullptr);
  CHECK(second.figures().live_blocks == 0);
}

/* An exception ends the scope; it lies in the heap, which is there until it has been handled. */
static void an_exception_ends_it() {
  hakmem::heap heap("thrown");
  bool was_caught = false;
  try {
    const hakmem::heap_in_use use(heap);
    throw std::runtime_error(std::string(200, 'x'));
  } catch (const std::runtime_error &error) {
    was_caught = std::string(error.what()).size() == 200;
    CHECK(hak_heap_of(error.what()) == heap.get());
    CHECK(heap_of_new_block() == nullptr);
  }
  CHECK(was_caught);
  CHECK(heap.figures().live_blocks == 0);
}

static hakmem::heap *full;
static int handled;
static void make_room() {
  if (++handled == 2) full->set_limit(4 << 20);
}

static void a_limit_calls_the_new_handler() {
  hakmem::heap heap("full");
  full = &heap;
  heap.set_limit(1 << 20);
  const std::new_handler before = std::set_new_handler(make_room);
  {
    const hakmem::heap_in_use use(heap);
    const std::unique_ptr<char[]> block(new char[2 << 20]);
    CHECK(handled == 2);
    CHECK(hak_heap_of(block.get()) == heap.get());
    std::set_new_handler(nullptr);
    bool was_thrown = false;
    try {
      const std::unique_ptr<char[]> more(new char[8 << 20]);
    } catch (const std::bad_alloc &) {
      was_thrown = true;
    }
    CHECK(was_thrown);
    CHECK(new (std::nothrow) char[8 << 20] == nullptr);
  }
  std::set_new_handler(before);
  CHECK(heap.figures().refusals >= 3);
}

int main() {
  scopes_nest();
  an_exception_ends_it();
  a_limit_calls_the_new_handler();
  std::puts("uses");
  return 0;
}
