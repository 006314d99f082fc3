/* containers.cc: hakmem/hakmem.hpp does what its comments say, as C++11 with containers and as
 * C++17 with std::pmr, too. With an argument it frees a block with the size of another class, which
 * must end it. */
#include <hakmem/hakmem.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/check.h"

template <typename T>
using in = hakmem::allocator<T>;
using text = std::basic_string<char, std::char_traits<char>, in<char>>;

template <std::size_t alignment>
struct alignas(alignment) aligned {
  char bytes[alignment];
};

static bool is_aligned(const void *pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

static void containers_hold_what_they_are_given() {
  std::map<int, text, std::less<int>, in<std::pair<const int, text>>> words;
  std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, in<std::pair<const int, int>>>
      squares;
  std::list<int, in<int>> all;
  for (int i = 0; i < 10000; i++) {
    words[i] = text(static_cast<std::size_t>(i % 300), 'x');
    squares[i] = i * i;
    all.push_back(i);
  }
  for (int i = 0; i < 10000; i++) {
    CHECK(words[i].size() == static_cast<std::size_t>(i % 300));
    CHECK(squares[i] == i * i);
    CHECK(all.front() == i);
    all.pop_front();
    CHECK(words.erase(i) == 1);
  }
}

static void blocks_are_hakmems_and_move_with_their_container() {
  std::vector<int, in<int>> numbers(100000, 7);
  const int *place = numbers.data();
  CHECK(hak_owns(place));
  std::vector<int, in<int>> others;
  others = std::move(numbers);
  CHECK(others.data() == place);
  CHECK(in<int>() == in<char>());
  CHECK(!(in<int>() != in<char>()));
  auto shared = std::allocate_shared<int>(in<int>(), 3);
  CHECK(hak_owns(shared.get()));
}

template <std::size_t alignment>
static void a_type_has_its_alignment() {
  std::vector<aligned<alignment>, in<aligned<alignment>>> things;
  for (int i = 0; i < 50; i++) {
    things.emplace_back();
    CHECK(is_aligned(things.data(), alignment));
  }
}

/* Of what the new handler may do, each once: it frees memory, or it gives up. */
static int handled;
static void give_up_at_the_third_time() {
  if (++handled == 3) std::set_new_handler(nullptr);
}

static volatile std::size_t huge = static_cast<std::size_t>(PTRDIFF_MAX) / 16;

static void what_cannot_be_given_throws() {
  bool is_thrown = false;
  try {
    in<std::uint64_t>().allocate(huge * 4);
  } catch (const std::bad_array_new_length &) {
    is_thrown = true;
  }
  CHECK(is_thrown);
  is_thrown = false;
  std::set_new_handler(give_up_at_the_third_time);
  try {
    in<std::uint64_t>().allocate(huge);
  } catch (const std::bad_array_new_length &) {
    CHECK(false);
  } catch (const std::bad_alloc &) {
    is_thrown = true;
  }
  CHECK(is_thrown);
  CHECK(handled == 3);
}

#if defined(HAKMEM_HAS_MEMORY_RESOURCE)
#include <memory_resource>

static const std::size_t sizes[] = {0, 1, 4, 8, 9, 16, 100, 1024, 5000, 65536, 70000, 2000000};

static void a_resource_gives_every_size_at_every_alignment() {
  hakmem::memory_resource *resource = hakmem::resource();
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 21; alignment *= 2) {
    for (std::size_t bytes : sizes) {
      void *block = resource->allocate(bytes, alignment);
      CHECK(block != nullptr);
      CHECK(is_aligned(block, alignment));
      CHECK(hak_owns(block));
      std::memset(block, 1, bytes);
      resource->deallocate(block, bytes, alignment);
    }
  }
}

static void resources_are_equal_and_stand_below_others() {
  hakmem::memory_resource mine;
  CHECK(mine == *hakmem::resource());
  CHECK(mine != *std::pmr::new_delete_resource());
  std::pmr::unsynchronized_pool_resource pool(hakmem::resource());
  std::pmr::monotonic_buffer_resource arena(&mine);
  for (std::pmr::memory_resource *each : {static_cast<std::pmr::memory_resource *>(&pool),
                                          static_cast<std::pmr::memory_resource *>(&arena)}) {
    std::pmr::vector<std::pmr::string> words(each);
    for (int i = 0; i < 1000; i++)
      words.emplace_back("a word that does not fit into the string itself");
    CHECK(hak_owns(words.back().data()));
  }
}

/* Is destroyed after main, when other static objects are gone. */
static std::pmr::vector<std::pmr::string> kept(hakmem::resource());

static void std_pmr() {
  a_resource_gives_every_size_at_every_alignment();
  resources_are_equal_and_stand_below_others();
  kept.assign(100, "a word that does not fit into the string itself");
}
#else
static void std_pmr() {}
#endif

int main(int argc, char **) {
  if (argc > 1) {
    in<char> bytes;
    bytes.deallocate(bytes.allocate(100), 1000);
    return 0;
  }
  containers_hold_what_they_are_given();
  blocks_are_hakmems_and_move_with_their_container();
  a_type_has_its_alignment<1>();
  a_type_has_its_alignment<16>();
  a_type_has_its_alignment<64>();
  a_type_has_its_alignment<4096>();
  std_pmr();
  what_cannot_be_given_throws();
#if __cplusplus >= 201703L
  std::puts("containers and std::pmr");
#else
  std::puts("containers");
#endif
}
