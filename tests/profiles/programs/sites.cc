/* A site inside an inlined function of a template; nm and objdump tell where it is. */
#include <cstdlib>
#include <vector>

namespace app {
void *volatile kept;

static inline __attribute__((always_inline)) void *raw(std::size_t bytes) {
  return std::malloc(bytes);  // line of raw
}

template <typename T>
struct Cache {
  __attribute__((noipa)) void grow(std::size_t count) {
    kept = raw(count * sizeof(T));  // line of grow
  }
};
}  // namespace app

int main() {
  app::Cache<std::vector<int>> cache;
  cache.grow(10);
  return app::kept == nullptr;
}
