/* pairs MAKER FREER SIZE [heap]: makes a block in one way and frees it in another; while a heap is
 * in use. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "hakmem/hakmem.h"
#include "misuse/hide.h"

/* Weak: preloaded, the library is not there when the program is linked. */
#pragma weak hak_heap_new
#pragma weak hak_heap_use
#pragma weak hak_heap_of

namespace {

constexpr std::align_val_t ALIGNED{256};

void *make(const char *maker, size_t size) {
  if (!strcmp(maker, "malloc")) return malloc(size);
  if (!strcmp(maker, "calloc")) return calloc(1, size);
  if (!strcmp(maker, "memalign")) return memalign(256, size);
  if (!strcmp(maker, "realloc")) return realloc(hide(malloc(size / 2)), size);
  if (!strcmp(maker, "new")) return ::operator new(size);
  if (!strcmp(maker, "new-nothrow")) return ::operator new(size, std::nothrow);
  if (!strcmp(maker, "new-aligned")) return ::operator new(size, ALIGNED);
  if (!strcmp(maker, "new-aligned-nothrow")) return ::operator new(size, ALIGNED, std::nothrow);
  if (!strcmp(maker, "new[]")) return ::operator new[](size);
  if (!strcmp(maker, "new[]-nothrow")) return ::operator new[](size, std::nothrow);
  if (!strcmp(maker, "new[]-aligned")) return ::operator new[](size, ALIGNED);
  if (!strcmp(maker, "new[]-aligned-nothrow")) return ::operator new[](size, ALIGNED, std::nothrow);
  abort();
}

void release(const char *freer, void *block, size_t size) {
  if (!strcmp(freer, "free")) return free(block);
  if (!strcmp(freer, "realloc")) return free(realloc(block, size * 3));
  if (!strcmp(freer, "realloc-in-place")) return free(realloc(block, size - 1));
  if (!strcmp(freer, "delete")) return ::operator delete(block);
  if (!strcmp(freer, "delete-nothrow")) return ::operator delete(block, std::nothrow);
  if (!strcmp(freer, "delete-aligned")) return ::operator delete(block, ALIGNED);
  if (!strcmp(freer, "delete-sized")) return ::operator delete(block, size);
  if (!strcmp(freer, "delete-sized-aligned")) return ::operator delete(block, size, ALIGNED);
  if (!strcmp(freer, "delete[]")) return ::operator delete[](block);
  if (!strcmp(freer, "delete[]-nothrow")) return ::operator delete[](block, std::nothrow);
  if (!strcmp(freer, "delete[]-aligned")) return ::operator delete[](block, ALIGNED);
  if (!strcmp(freer, "delete[]-sized")) return ::operator delete[](block, size);
  if (!strcmp(freer, "delete[]-sized-aligned")) return ::operator delete[](block, size, ALIGNED);
  abort();
}

}  // namespace

int main(int count, char **words) {
  size_t size = strtoul(words[3], nullptr, 10);
  hak_heap *heap = count > 4 ? hak_heap_new(words[4]) : nullptr;
  if (heap != nullptr && !hak_heap_use(heap, nullptr)) return 1;
  void *block = hide(make(words[1], size));
  if (heap != nullptr && hak_heap_of(block) != heap) return 1;
  release(words[2], block, size);
  return 0;
}
