// A program with operators of its own, as C++ lets it have them: the plain forms (but for NO_PLAIN), those of arrays, too (ARRAYS; DELETE_ARRAY:
// one of the two), and of aligned types (ALIGNED).  All other forms, which the C++ library makes of these, are to come to them: each block has a header that says whose it is.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {
constexpr std::size_t header_bytes = 64;
constexpr std::uint64_t plain_mark = 0x1234567890abcdef, array_mark = 0xfedcba0987654321;
long live_blocks;

void fail(const char *what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

void *make(std::size_t size, std::size_t alignment, std::uint64_t mark) {
  char *start = static_cast<char *>(
      std::aligned_alloc(alignment, (size + header_bytes + alignment - 1) / alignment * alignment));
  if (!start) throw std::bad_alloc();
  *reinterpret_cast<std::uint64_t *>(start) = mark;
  live_blocks++;
  return start + header_bytes;
}

void unmake(void *block, std::uint64_t mark) {
  if (!block) return;
  char *start = static_cast<char *>(block) - header_bytes;
  if (*reinterpret_cast<std::uint64_t *>(start) != mark) fail("a block of somebody else's");
  *reinterpret_cast<std::uint64_t *>(start) = 0;
  live_blocks--;
  std::free(start);
}

template <std::size_t Bytes, std::size_t Alignment>
struct alignas(Alignment) thing {
  char bytes[Bytes];
};

/* The compiler is not to know that a new and its delete cancel out. */
template <typename T>
T *hide(T *pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

/* Whether the program's own are called, for arrays as well. */
template <typename T>
void use_form(bool are_own) {
  for (int i = 0; i < 100; i++) {
    delete hide(new T);
    T *one = hide(new T), *other = hide(new (std::nothrow) T);
    delete other;
    delete one;
    T *some = hide(new T[3]), *more = hide(new (std::nothrow) T[3]);
    if (live_blocks != (are_own ? 2 : 0)) fail("arrays are not whose they should be");
    delete[] more;
    delete[] some;
  }
}

struct throws {
  throws() { throw 1; }
};

void use_library() {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1000; i++) texts.push_back(std::string(i, 'x'));
  std::stable_sort(texts.begin(), texts.end()); /* its buffer is made by nothrow new */
}
}  // namespace

#ifndef NO_PLAIN
void *operator new(std::size_t size) { return make(size, 64, plain_mark); }
void operator delete(void *block) noexcept { unmake(block, plain_mark); }
#endif
#ifdef ARRAYS
void *operator new[](std::size_t size) { return make(size, 64, array_mark); }
void operator delete[](void *block) noexcept { unmake(block, array_mark); }
#elif defined(DELETE_ARRAY)
void operator delete[](void *block) noexcept { unmake(block, plain_mark); }
#endif
#ifdef ALIGNED
void *operator new(std::size_t size, std::align_val_t) { return make(size, 64, plain_mark); }
void operator delete(void *block, std::align_val_t) noexcept { unmake(block, plain_mark); }
#endif
#if defined(ALIGNED) && defined(ARRAYS)
void *operator new[](std::size_t size, std::align_val_t) { return make(size, 64, array_mark); }
void operator delete[](void *block, std::align_val_t) noexcept { unmake(block, array_mark); }
#endif

#if defined(NO_PLAIN) && !defined(ARRAYS)
constexpr bool are_own = false;
#else
constexpr bool are_own = true;
#endif
#ifdef ALIGNED
constexpr bool are_aligned_own = true;
#else
constexpr bool are_aligned_own = false;
#endif

int main() {
  use_form<thing<1, 1>>(are_own);
  use_form<thing<40, 8>>(are_own);
  use_form<thing<960, 8>>(are_own); /* with its header of the same size class as without */
  use_form<thing<5000, 8>>(are_own);
  use_form<thing<100000, 8>>(are_own);
  use_form<thing<3000000, 8>>(are_own);
  use_form<thing<64, 64>>(are_aligned_own);
  use_form<thing<6400, 64>>(are_aligned_own);
  for (int i = 0; i < 10; i++) {
    try {
      hide(new (std::nothrow) throws);
    } catch (int) {
    }
  }
  use_library();
  if (live_blocks) fail("not all came back");
}
