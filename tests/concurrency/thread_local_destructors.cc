// Destructors of C++ thread_local objects free blocks of their own thread, of main and of threads
// that have ended, while the thread is ending.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"

static constexpr int threads = 1000;

struct Block {
  explicit Block(size_t index) : index(index), bytes(::operator new(tier_sizes[index])) {
    stamp_write(bytes, tier_sizes[index], index);
  }
  Block(const Block &) = delete;
  ~Block() {
    CHECK(stamp_holds(bytes, tier_sizes[index], index));
    ::operator delete(bytes);
  }
  size_t index;
  void *bytes;
};

using Blocks = std::vector<std::unique_ptr<Block>>;

static Blocks some_blocks() {
  Blocks blocks;
  for (size_t i = 0; i < TIER_SIZES - 5; i += 3) blocks.push_back(std::make_unique<Block>(i));
  return blocks;
}

struct Keeper {
  Blocks blocks;
  std::string text;
  ~Keeper() {
    text.append(1000, 'x');  // allocates while the thread ends
    blocks = some_blocks();
  }
};

static thread_local Keeper first, second;
static Blocks left_behind;

int main() {
  for (int i = 0; i < threads; i++) {
    Blocks mains = some_blocks();
    std::thread([&] {
      first.blocks = some_blocks();
      second.blocks = std::move(mains);
      if (!left_behind.empty()) second.blocks.push_back(std::move(left_behind.back()));
      left_behind = some_blocks();
    }).join();
  }
  first.blocks = some_blocks();  // destroyed after main has returned
  return 0;
}
