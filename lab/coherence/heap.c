/* heap.c: malloc and free of the loads; an instrumented source, so that the fast paths' accesses
 * are seen. */
#include "coherence.h"
#include "heap/fast_path.h"
#include "heap/thread.h"

void heap_start(void) {
  if (!heaps_ready()) OS_FATAL("no address space");
}

void *load_malloc(size_t bytes) {
  pass_time(COST_CALL);
  count_call();
  void *block = heap_malloc(bytes);
  if (!block) OS_FATAL("no memory");
  return block;
}

void load_free(void *block) {
  pass_time(COST_CALL);
  count_call();
  heap_free(block);
}

bool is_of_a_thread(uintptr_t address) {
  for (struct owner *owner = owners_first(); owner; owner = owner->next_of_all)
    if (address - (uintptr_t)heap_of_owner(owner) < sizeof(struct heap))
      return owner->thread_id != 0;
  return false;
}
