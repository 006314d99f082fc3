/* Loads and closes a plugin (argv[1]) again and again, argv[2] times, while another thread
 * allocates. Every time a block is made and another freed on the plugin's side, now by this thread,
 * now by one that ends after the plugin was closed. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

static atomic_bool stop;

static void *churn(void *unused) {
  for (size_t i = 0; !atomic_load(&stop); i++) {
    size_t bytes = tier_sizes[i % TIER_SIZES];
    char *block = MUST(malloc(bytes));
    block[0] = block[bytes - 1] = 1;
    free(block);
  }
  return unused;
}

static void *load_and_close(void *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK_MSG(library != NULL, "%s", dlerror());
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "plugin_malloc");
  void (*release)(void *) = (void (*)(void *))dlsym(library, "plugin_free");
  CHECK(allocate != NULL && release != NULL);
  void *theirs = allocate(3000), *ours = malloc(500);
  CHECK(theirs != NULL && ours != NULL);
  stamp_write(theirs, 3000, 1);
  release(ours);
  CHECK(dlclose(library) == 0);
  CHECK(stamp_holds(theirs, 3000, 1));
  free(theirs);
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  size_t times = strtoul(argv[2], NULL, 10);
  pthread_t churning = thread_start(churn, NULL);
  for (size_t i = 0; i < times; i++) {
    if (i % 2 == 0) {
      load_and_close(argv[1]);
    } else {
      thread_run(load_and_close, argv[1]);
    }
  }
  atomic_store(&stop, true);
  thread_join(churning);
  return 0;
}
