/* A program on libc's malloc loads libhakmem (argv[1]) while it runs, and uses both side by
 * side. */
#include <dlfcn.h>

#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

static void *(*hak_malloc)(size_t size);
static void *(*hak_realloc)(void *block, size_t size);
static void (*hak_free)(void *block);
static bool (*hak_owns)(const void *block);

static void *find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  CHECK_MSG(symbol != NULL, "%s", name);
  return symbol;
}

static void use_both(void) {
  for (size_t i = 0; i < TIER_SIZES; i++) {
    void *theirs = malloc(tier_sizes[i]), *ours = hak_malloc(tier_sizes[i]);
    CHECK(theirs != NULL && ours != NULL);
    CHECK(hak_owns(ours) && !hak_owns(theirs));
    stamp_write(theirs, tier_sizes[i], 1);
    stamp_write(ours, tier_sizes[i], 2);
    theirs = realloc(theirs, 2 * tier_sizes[i]);
    ours = hak_realloc(ours, 2 * tier_sizes[i]);
    CHECK(stamp_holds(theirs, tier_sizes[i], 1) && stamp_holds(ours, tier_sizes[i], 2));
    free(theirs);
    hak_free(ours);
  }
  hak_free(malloc(100)); /* libc's block: forwarded to libc */
}

static void *body(void *unused) {
  use_both();
  return unused;
}

static void *body_closing(void *library) {
  use_both();
  CHECK(dlclose(library) == 0);
  return NULL; /* the thread ends after the library was closed: its destructor must still be there */
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  void *before = malloc(5000);
  stamp_write(before, 5000, 3);
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK_MSG(library != NULL, "%s", dlerror());
  hak_malloc = (void *(*)(size_t))find(library, "hak_malloc");
  hak_realloc = (void *(*)(void *, size_t))find(library, "hak_realloc");
  hak_free = (void (*)(void *))find(library, "hak_free");
  hak_owns = (bool (*)(const void *))find(library, "hak_owns");
  use_both();
  thread_run(body, NULL);
  thread_run(body_closing, library);
  CHECK(stamp_holds(before, 5000, 3));
  free(before);
  return 0;
}
