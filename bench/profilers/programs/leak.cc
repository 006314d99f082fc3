/* Leaks from twelve sites in known shares, among many blocks that live shortly.  See
 * ../README.md. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {
struct Block {
  Block *next;
};
Block *leaked[16];
volatile unsigned sink;

void keep(int site, void *memory, std::size_t bytes) {
  std::memset(memory, 1, bytes);
  auto *block = static_cast<Block *>(memory);
  block->next = leaked[site];
  leaked[site] = block;
}

double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}
}  // namespace

#define SITE(NUMBER, NAME, BYTES, COUNT, ALLOCATE)                 \
  __attribute__((noinline)) void site_##NAME() {                   \
    for (int i = 0; i < COUNT; i++) keep(NUMBER, ALLOCATE, BYTES); \
    asm volatile(""); /* the frame stays: no tail call */          \
  }
// clang-format off
#define SITES \
    SITE(0,  orders,   64,    1600, ::operator new(64)) \
    SITE(1,  sessions, 256,   320,  std::malloc(256)) \
    SITE(2,  cache,    4096,  16,   new char[4096]) \
    SITE(3,  images,   16384, 3,    std::calloc(4, 4096)) \
    SITE(4,  index,    128,   300,  std::allocator<char>().allocate(128)) \
    SITE(5,  names,    32,    960,  ::operator new(32)) \
    SITE(6,  logs,     1024,  24,   std::realloc(std::malloc(512), 1024)) \
    SITE(7,  parse,    512,   38,   std::malloc(512)) \
    SITE(8,  frames,   8192,  2,    std::aligned_alloc(64, 8192)) \
    SITE(9,  tasks,    96,    128,  new char[96]) \
    SITE(10, stats,    48,    128,  std::malloc(48)) \
    SITE(11, misc,     80,    48,   std::malloc(80))
// clang-format on
SITES

/* Blocks that live shortly: texts, trees and vectors, as programs make them. */
__attribute__((noinline)) void churn(unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) {
    std::map<int, std::string> table;
    for (int key = 0; key < 40; key++)
      table.emplace(key, std::string(20 + (i + unsigned(key) * 7) % 200, 'x'));
    std::vector<std::unique_ptr<int[]>> rows;
    for (unsigned row = 0; row < 40; row++)
      rows.push_back(std::make_unique<int[]>(4 + (row * 5 + i) % 60));
    sink = sink + unsigned(table.size() + rows.size());
  }
}

__attribute__((noinline)) void turn() {
#undef SITE
#define SITE(NUMBER, NAME, BYTES, COUNT, ALLOCATE) site_##NAME();
  SITES churn(120);
}

/* leak work TURNS: as fast as it can.
   leak pace SECONDS: 20 turns a second; prints "leaking" when it has begun. */
int main(int argc, char **argv) {
  if (argc != 3) return 2;
  double amount = std::atof(argv[2]);
  if (std::strcmp(argv[1], "work") == 0) {
    for (int i = 0; i < int(amount); i++) turn();
    return 0;
  }
  double start = seconds();
  for (int i = 0; seconds() < start + amount; i++) {
    turn();
    if (i == 0) {
      std::puts("leaking");
      std::fflush(stdout);
    }
    double left = start + (i + 1) / 20.0 - seconds();
    if (left > 0) {
      timespec pause = {0, long(left * 1e9)};
      nanosleep(&pause, nullptr);
    }
  }
}
