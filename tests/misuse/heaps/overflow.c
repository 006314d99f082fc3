/* overflow WAY SIZE BYTE: writes one byte past a block of a heap that the program has made, and
 * does what lets it be seen. */
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"
#include "misuse/hide.h"

static hak_heap *heap;
static size_t size;

static void *free_block(void *block) {
  free(block);
  return NULL;
}

static void ask(char *block) { malloc_usable_size(block); }
static void release(char *block) { free(block); }
static void release_in_thread(char *block) { thread_run(free_block, block); }
static void resize(char *block) { hide(realloc(block, size + 1)); }
static void shrink(char *block) { hide(hak_heap_realloc(heap, block, size - size / 4)); }
static void move(char *block) { hak_heap_realloc(hak_heap_new("other"), block, size); }
static void expand(char *block) { hak_expand(block, size); }
static void release_all(char *unused) { hak_heap_free_all(unused ? heap : NULL); }
static void destroy(char *unused) { hak_heap_destroy(unused ? heap : NULL); }

static const struct way {
  const char *name;
  void (*call)(char *block);
} ways[] = {
    {"malloc_usable_size", ask},
    {"free", release},
    {"free in a thread", release_in_thread},
    {"realloc", resize},
    {"realloc to less", shrink},
    {"hak_heap_realloc", move},
    {"hak_expand", expand},
    {"free_all", release_all},
    {"destroy", destroy},
};

int main(int argc, char **argv) {
  CHECK(argc == 4);
  size = strtoul(argv[2], NULL, 10);
  heap = MUST(hak_heap_new("mine"));
  for (int i = 0; i < 100; i++) hide(hak_heap_malloc(heap, size)); /* beside it */
  char *block = MUST(hide(hak_heap_malloc(heap, size)));
  block[size] = (char)atoi(argv[3]);
  for (size_t way = 0; way < COUNT_OF(ways); way++)
    if (strcmp(ways[way].name, argv[1]) == 0) ways[way].call(block);
  return 0;
}
