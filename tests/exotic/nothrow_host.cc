// A program with plain operators of its own and the C++ library within it, of which it has no nothrow form: those that its plug-in asks for
// (nothrow_plugin.cc) are to come to its own.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <new>

static long live_blocks;

void *operator new(std::size_t size) {
  char *start = static_cast<char *>(std::malloc(size + 64));
  if (!start) std::abort();
  live_blocks++;
  return start + 64;
}
void operator delete(void *block) noexcept {
  live_blocks--;
  std::free(static_cast<char *>(block) - 64);
}

static int fail(const char *what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int argc, char **argv) {
  void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (!plugin) return fail("no plug-in");
  auto make_one = reinterpret_cast<void *(*)(unsigned long)>(dlsym(plugin, "plugin_new"));
  auto end_one = reinterpret_cast<void (*)(void *)>(dlsym(plugin, "plugin_delete"));
  for (unsigned long size = 1; size < 100000; size *= 3) {
    void *block = make_one(size);
    if (!block) return fail("no block");
    if (live_blocks != 1) return fail("not the program's");
    end_one(block);
  }
  return live_blocks ? fail("not all came back") : 0;
}
