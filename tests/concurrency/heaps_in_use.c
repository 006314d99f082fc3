/* Threads use heaps that they share and heaps of their own, for malloc and all else that allocates,
 * pass blocks on, resize and free what others have allocated; end in the middle of a use; and one
 * tries to destroy what others use.  Each block is in the heap that was in use where it was asked
 * for, and the figures come out even. */
#include "concurrency/heap_places.h"

enum { THREADS = 4, OWN_BLOCKS = 40, CHILD_LIMIT_S = 30 };

static size_t rounds, forks;

/* By a thread that uses the heap. */
static void *take_in_use(hak_heap *heap, size_t size, uint64_t *random) {
  (void)heap;
  size_t way = random_below(random, 3);
  return way == 0 ? malloc(size) : way == 1 ? calloc(1, size) : hak_aligned_alloc(32, size);
}

static void use_an_own_heap(uint64_t *random) {
  hak_heap *heap = hak_heap_new("own"), *before;
  CHECK(heap != NULL && hak_heap_use(heap, &before));
  for (size_t i = 0; i < OWN_BLOCKS; i++) {
    char *volatile block = malloc(place_draw_size(random));
    CHECK(block != NULL && hak_heap_of(block) == heap);
    if (i % 4 == 0) free(block);
  }
  if (random_below(random, 2)) CHECK(hak_heap_use(before, NULL));
  CHECK(hak_heap_destroy(heap) && hak_heap_use(before, NULL));
}

/* Somebody uses it, for as long as there are threads. */
static void fail_to_destroy(hak_heap *heap) { CHECK_FAILS(hak_heap_destroy(heap), EBUSY); }

static void *live(void *number) {
  uint64_t random = random_seed((uint64_t)(size_t)number);
  hak_heap *heap = NULL;
  for (size_t round = 0; round < rounds; round++) {
    if (round % 8 == 0) {
      size_t which = random_below(&random, HEAPS + 1);
      heap = which < HEAPS ? heaps[which] : NULL;
      CHECK(hak_heap_use(heap, NULL));
    }
    place_visit(heap, take_in_use, &random);
    if (round % 500 == 0) use_an_own_heap(&random);
    if (round % 100 == 0) fail_to_destroy(heaps[0]);
  }
  return NULL; /* the use ends with the thread */
}

/* In a child: it goes on with what its thread used, alone. */
static void live_in_child(hak_heap *used) {
  uint64_t random = random_seed(99);
  hak_heap *before;
  alarm(CHILD_LIMIT_S);
  for (size_t i = 0; i < 200; i++) {
    char *volatile block = malloc(place_draw_size(&random));
    CHECK(block != NULL && hak_heap_of(block) == used);
    if (i % 3) free(block);
  }
  for (size_t i = 0; i < HEAPS; i++)
    if (heaps[i] != used) CHECK(hak_heap_destroy(heaps[i]));
  CHECK(hak_heap_use(used, &before) && before == used);
  if (used) CHECK(hak_heap_destroy(used));
  CHECK(hak_heap_use(NULL, &before) && before == NULL);
  char *volatile block = malloc(100);
  CHECK(block != NULL && hak_heap_of(block) == NULL);
  _exit(0);
}

static void fork_often(void) {
  for (size_t i = 0; i < forks; i++) {
    hak_heap *used = i % (HEAPS + 1) < HEAPS ? heaps[i % (HEAPS + 1)] : NULL;
    CHECK(hak_heap_use(used, NULL));
    pid_t pid = fork();
    if (pid == 0) live_in_child(used);
    child_join(pid);
  }
  CHECK(hak_heap_use(NULL, NULL));
}

static void *keep_in_use(void *descriptors) {
  char byte = 0;
  CHECK(hak_heap_use(heaps[0], NULL));
  CHECK(write(((int *)descriptors)[1], &byte, 1) == 1);
  CHECK(read(((int *)descriptors)[2], &byte, 1) == 1);
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  pthread_t threads[THREADS];
  int pipes[4];
  char byte = 0;
  rounds = strtoul(argv[1], NULL, 10);
  forks = strtoul(argv[2], NULL, 10);
  places_set_up();
  CHECK(pipe(pipes) == 0 && pipe(pipes + 2) == 0);
  pthread_t keeper = thread_start(keep_in_use, pipes);
  CHECK(read(pipes[0], &byte, 1) == 1);
  for (size_t i = 0; i < THREADS; i++) threads[i] = thread_start(live, (void *)i);
  fork_often();
  for (size_t i = 0; i < THREADS; i++) thread_join(threads[i]);
  CHECK(write(pipes[3], &byte, 1) == 1);
  thread_join(keeper);
  places_check_figures();
  for (size_t i = 0; i < HEAPS; i++) CHECK(hak_heap_destroy(heaps[i]));
  return 0;
}
