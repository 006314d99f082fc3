/* Threads work in a heap that the program has made while another forks.  The child, in which that
 * heap may be cut off in the middle of a change, allocates in it, frees blocks that it has from its
 * parent, empties it and makes others. */
#include "api/figures.h"
#include "api/random.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

enum { THREADS = 3, HELD = 64, BLOCKS = 200, CHILD_LIMIT_S = 30 };

static hak_heap *heap;
static char *kept[HELD]; /* of the thread that forks */

static size_t size_of(size_t index) { return index % 16 == 15 ? 100000 : 16 + index % 15 * 70; }

static void *live(void *number) {
  uint64_t random = random_seed((uint64_t)(size_t)number);
  char *held[HELD] = {0};
  for (;;) {
    size_t at = random_below(&random, HELD);
    if (held[at]) free(held[at]);
    held[at] = MUST(hak_heap_malloc(heap, size_of(random_below(&random, 1000))));
  }
}

static void fill_and_empty(hak_heap *theirs) {
  char *blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) {
    blocks[i] = hak_heap_malloc(theirs, size_of(i));
    CHECK(blocks[i] != NULL && hak_heap_of(blocks[i]) == theirs);
    stamp_write(blocks[i], size_of(i), i);
  }
  for (size_t i = 0; i < BLOCKS; i++) CHECK(stamp_holds(blocks[i], size_of(i), i));
  for (size_t i = 0; i < BLOCKS; i += 2) free(blocks[i]);
  CHECK(hak_heap_free_all(theirs));
  CHECK(figures_of(theirs).live_bytes == 0);
}

static void *allocate_too(void *unused) {
  char *block = MUST(hak_heap_malloc(heap, 100));
  free(block);
  return unused;
}

static void child(void) {
  alarm(CHILD_LIMIT_S);
  for (size_t i = 0; i < HELD; i++) {
    CHECK(stamp_holds(kept[i], size_of(i), i) && hak_heap_of(kept[i]) == heap);
    kept[i] = realloc(kept[i], size_of(i) + 5000);
    CHECK(kept[i] != NULL && stamp_holds(kept[i], size_of(i), i) && hak_heap_of(kept[i]) == heap);
    if (i % 2) free(kept[i]);
  }
  thread_run(allocate_too, NULL);
  fill_and_empty(heap);
  hak_heap *other = MUST(hak_heap_new("the child's"));
  fill_and_empty(other);
  CHECK(hak_heap_destroy(heap) && hak_heap_destroy(other));
  _exit(0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2 && (heap = hak_heap_new("shared")) != NULL);
  for (size_t i = 0; i < HELD; i++) {
    kept[i] = MUST(hak_heap_malloc(heap, size_of(i)));
    stamp_write(kept[i], size_of(i), i);
  }
  for (size_t i = 0; i < THREADS; i++) thread_start(live, (void *)i);
  for (size_t forks = strtoul(argv[1], NULL, 10); forks; forks--) {
    pid_t pid = fork();
    if (pid == 0) child();
    child_join(pid);
  }
  _exit(0);
}
