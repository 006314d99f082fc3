// A program without the C++ library, with plain operators of its own, whose blocks have headers: other forms are to come to them.  It is
// linked with musl's C library, too.
extern "C" void *malloc(unsigned long size);
extern "C" void free(void *block);

namespace std {
struct nothrow_t {};
}  // namespace std
void *operator new(unsigned long size, const std::nothrow_t &) noexcept;
void operator delete(void *block, const std::nothrow_t &) noexcept;

static long live_blocks;

void *operator new(unsigned long size) {
  live_blocks++;
  return static_cast<char *>(malloc(size + 64)) + 64;
}
void operator delete(void *block) noexcept {
  if (!block) return;
  live_blocks--;
  free(static_cast<char *>(block) - 64);
}

int main() {
  static const std::nothrow_t nothrow{};
  for (unsigned long size = 1; size < 10000000; size *= 3) {
    void *sized = ::operator new(size);
    asm volatile("" : "+r"(sized) : : "memory"); /* the compiler is not to see where it came from */
    ::operator delete(sized, size);
    void *block = ::operator new(size, nothrow);
    if (live_blocks != 1) return 1;
    ::operator delete(block, nothrow);
  }
  return live_blocks != 0;
}
