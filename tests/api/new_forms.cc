// All forms of operator new and delete: scalar, array, nothrow, sized, aligned, and their mixtures.
#include <cstdint>
#include <new>

#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

static void check_block(void *block, size_t alignment, size_t size) {
  CHECK_MSG(block != nullptr, "size %zu", size);
  CHECK_MSG(reinterpret_cast<uintptr_t>(block) % alignment == 0, "size %zu, alignment %zu: %p",
            size, alignment, block);
  stamp_write(block, size, size);
  CHECK(stamp_holds(block, size, size));
}

static void check_unaligned(size_t size) {
  const size_t natural = size <= 8 ? 8 : 16;
  void *blocks[12];
  for (size_t i = 0; i < COUNT_OF(blocks); i += 4) {
    blocks[i] = ::operator new(size);
    blocks[i + 1] = ::operator new(size, std::nothrow);
    blocks[i + 2] = ::operator new[](size);
    blocks[i + 3] = ::operator new[](size, std::nothrow);
  }
  for (void *block : blocks) check_block(block, natural, size);
  ::operator delete(blocks[0]);
  ::operator delete(blocks[1], std::nothrow);
  ::operator delete[](blocks[2]);
  ::operator delete[](blocks[3], std::nothrow);
  ::operator delete(blocks[4], size);
  ::operator delete(blocks[5], size);
  ::operator delete[](blocks[6], size);
  ::operator delete[](blocks[7], size);
  ::operator delete(blocks[8], std::nothrow);
  ::operator delete(blocks[9]);
  ::operator delete[](blocks[10], std::nothrow);
  ::operator delete[](blocks[11]);
}

static void check_aligned(size_t size, size_t alignment) {
  const auto align = static_cast<std::align_val_t>(alignment);
  void *blocks[12];
  for (size_t i = 0; i < COUNT_OF(blocks); i += 4) {
    blocks[i] = ::operator new(size, align);
    blocks[i + 1] = ::operator new(size, align, std::nothrow);
    blocks[i + 2] = ::operator new[](size, align);
    blocks[i + 3] = ::operator new[](size, align, std::nothrow);
  }
  for (void *block : blocks) check_block(block, alignment, size);
  ::operator delete(blocks[0], align);
  ::operator delete(blocks[1], align, std::nothrow);
  ::operator delete[](blocks[2], align);
  ::operator delete[](blocks[3], align, std::nothrow);
  ::operator delete(blocks[4], size, align);
  ::operator delete(blocks[5], size, align);
  ::operator delete[](blocks[6], size, align);
  ::operator delete[](blocks[7], size, align);
  ::operator delete(blocks[8], align, std::nothrow);
  ::operator delete(blocks[9], align);
  ::operator delete[](blocks[10], align, std::nothrow);
  ::operator delete[](blocks[11], align);
}

struct alignas(256) Wide {
  char bytes[256];
};

int main() {
  for (size_t size : tier_sizes) {
    check_unaligned(size);
    for (size_t alignment = 8; alignment <= 2 * MIB; alignment *= 8) check_aligned(size, alignment);
  }
  void *first = ::operator new(0), *second = ::operator new(0);
  CHECK(first != nullptr && first != second);
  ::operator delete(first);
  ::operator delete(second);
  ::operator delete(nullptr);
  ::operator delete[](nullptr);
  Wide *wide = new Wide[3];  // what the compiler makes of a plain expression
  check_block(wide, 256, 3 * sizeof(Wide));
  delete[] wide;
  return 0;
}
