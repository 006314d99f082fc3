/* reload.c: one thread loads libraries (the arguments) in turn, unwinds inside them and unloads
 * them, while others unwind.
 *
 * A library comes to lie where another lay.  Prints how many stacks were compared, and how many
 * times the place was taken by another library with the same address of the function. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "compare.h"

enum { ROUNDS = 400, THREADS = 2 };

typedef int plugin_function(int (*top)(void), int depth);

static atomic_bool is_over;
static atomic_ulong beside;

static int top(void) {
  compare("inside a library");
  return 0;
}

__attribute__((noinline)) static int recurse(int depth) {
  if (depth) return recurse(depth - 1) + 1;
  compare("beside the loader");
  return 0;
}

static void *unwind_on(void *argument) {
  while (!atomic_load(&is_over)) {
    recurse(10);
    atomic_fetch_add(&beside, 1);
  }
  return argument;
}

static void *use(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  plugin_function *call = library ? (plugin_function *)dlsym(library, "plugin_call") : NULL;
  if (!call) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  call(top, 3);
  call(top, 3);
  dlclose(library);
  return (void *)call;
}

int main(int count, char **paths) {
  pthread_t threads[THREADS];
  unsigned long replaced = 0;
  void *before = NULL;
  for (int thread = 0; thread < THREADS; thread++)
    pthread_create(&threads[thread], NULL, unwind_on, NULL);
  for (int round = 0; round < ROUNDS || atomic_load(&beside) < ROUNDS; round++) {
    void *here = use(paths[1 + round % (count - 1)]);
    replaced += here == before;
    before = here;
  }
  atomic_store(&is_over, true);
  for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
  printf("%lu stacks are equal, %lu times replaced\n", stacks_compared, replaced);
  return 0;
}
