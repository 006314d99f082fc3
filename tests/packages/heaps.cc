/* heaps.cc: hakmem::heap and, as C++17, hakmem::heap_resource do what their comments say.  With an
 * argument it frees a block with the size of another class, which must end it. */
#include <hakmem/hakmem.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "api/check.h"

static const std::size_t sizes[] = {0, 1, 8, 9, 16, 100, 1024, 5000, 65536, 70000, 2000000};

static void blocks_are_of_the_heap_at_every_alignment() {
  hakmem::heap heap("all sizes");
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 17; alignment *= 2) {
    for (std::size_t bytes : sizes) {
      void *block = heap.allocate(bytes, alignment);
      CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      CHECK(hak_heap_of(block) == heap.get());
      std::memset(block, 1, bytes);
      heap.deallocate(block, bytes, alignment);
    }
  }
  CHECK(heap.figures().live_blocks == 0);
}

static void it_owns_its_heap_and_moves() {
  hakmem::heap first("first");
  void *block = first.allocate(100);
  hak_heap *handle = first.get();
  hakmem::heap second(std::move(first));
  CHECK(first.get() == nullptr);
  CHECK(second.get() == handle);
  hakmem::heap third;
  third.allocate(48);
  third = std::move(second);
  CHECK(third.get() == handle);
  CHECK(std::strcmp(third.figures().name, "first") == 0);
  third.set_name("third");
  third.set_tag(7);
  CHECK(std::strcmp(third.figures().name, "third") == 0);
  CHECK(third.figures().tag == 7);
  CHECK(third.figures().live_blocks == 1);
  std::thread([block] { hak_free(block); }).join();
  CHECK(third.figures().live_blocks == 0);
  CHECK(hak_heap_destroy(third.release()));
}

/* What a new handler may do: it frees memory. */
static hakmem::heap *full;
static int handled;
static void free_what_there_is() {
  handled++;
  CHECK(full->free_all());
  std::set_new_handler(nullptr);
}

static void a_limit_throws() {
  hakmem::heap heap("limited");
  CHECK(heap.set_limit(100000));
  while (heap.try_allocate(1000) != nullptr) {
  }
  CHECK(heap.figures().refusals == 1);
  bool is_thrown = false;
  try {
    heap.allocate(1000);
  } catch (const std::bad_alloc &) {
    is_thrown = true;
  }
  CHECK(is_thrown);
  full = &heap;
  std::set_new_handler(free_what_there_is);
  CHECK(heap.allocate(1000) != nullptr);
  CHECK(handled == 1);
  CHECK(heap.figures().live_blocks == 1);
  heap.set_limit(0);
  CHECK(heap.try_allocate(200000) != nullptr);
}

#if defined(HAKMEM_HAS_MEMORY_RESOURCE)
#include <memory_resource>
#include <string>
#include <vector>

static void containers_are_in_the_heap() {
  hakmem::heap heap("containers");
  hakmem::heap_resource resource(heap), same(heap.get());
  hakmem::heap other;
  CHECK(resource == same);
  CHECK(resource != hakmem::heap_resource(other));
  CHECK(resource != *hakmem::resource());
  {
    std::pmr::vector<std::pmr::string> words(&resource);
    for (int i = 0; i < 1000; i++)
      words.emplace_back("a word that does not fit into the string itself");
    CHECK(hak_heap_of(words.data()) == heap.get());
    CHECK(hak_heap_of(words.back().data()) == heap.get());
    hakmem::heap moved(std::move(heap));
    words.emplace_back("a word that does not fit into the string itself");
    CHECK(hak_heap_of(words.back().data()) == moved.get());
    heap = std::move(moved);
  }
  CHECK(heap.figures().live_bytes == 0);
}
#else
static void containers_are_in_the_heap() {}
#endif

int main(int argc, char **) {
  if (argc > 1) {
    hakmem::heap heap;
    heap.deallocate(heap.allocate(100), 1000);
    return 0;
  }
  blocks_are_of_the_heap_at_every_alignment();
  it_owns_its_heap_and_moves();
  a_limit_throws();
  containers_are_in_the_heap();
  std::puts("heaps");
}
