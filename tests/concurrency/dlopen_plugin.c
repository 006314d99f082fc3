/* Loads the plugin argv[1] and lets blocks cross the border between it and the program, in the
 * directions that argv[2] names:
 *   within    blocks are freed on the side that allocated them
 *   to-main   the program also frees and reallocates the plugin's blocks
 *   to-plugin the plugin also frees and reallocates the program's blocks
 * A third argument `deepbind` loads it with RTLD_DEEPBIND: the plugin's own libraries come
 * first. */
#include <dlfcn.h>

#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

typedef struct {
  void *(*allocate)(size_t size);
  void *(*resize)(void *block, size_t size);
  void (*release)(void *block);
} side;

static side program = {malloc, realloc, free}, plugin;
static char *(*plugin_strdup)(const char *text);
static const side *from, *to;

static void cross(const side *giver, const side *taker, size_t size) {
  void *block = giver->allocate(size), *second = giver->allocate(size);
  CHECK(block != NULL && second != NULL);
  stamp_write(block, size, 1);
  stamp_write(second, size, 2);
  taker->release(block);
  second = taker->resize(second, 3 * size);
  CHECK(second != NULL && stamp_holds(second, size, 2));
  stamp_write(second, 3 * size, 2);
  taker->release(second);
}

static void *body(void *unused) {
  for (int round = 0; round < 4; round++) {
    for (size_t i = 0; i < TIER_SIZES; i++) {
      cross(&program, &program, tier_sizes[i]);
      cross(&plugin, &plugin, tier_sizes[i]);
      cross(from, to, tier_sizes[i]);
    }
    char *text = plugin_strdup("from libc itself");
    CHECK(strcmp(text, "from libc itself") == 0);
    program.release(text);
  }
  return unused;
}

static void *find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  CHECK_MSG(symbol != NULL, "%s", name);
  return symbol;
}

int main(int argc, char **argv) {
  CHECK(argc >= 3);
  int deepbind = argc > 3 && strcmp(argv[3], "deepbind") == 0 ? RTLD_DEEPBIND : 0;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | deepbind);
  CHECK_MSG(library != NULL, "%s", dlerror());
  plugin.allocate = (void *(*)(size_t))find(library, "plugin_malloc");
  plugin.resize = (void *(*)(void *, size_t))find(library, "plugin_realloc");
  plugin.release = (void (*)(void *))find(library, "plugin_free");
  plugin_strdup = (char *(*)(const char *))find(library, "plugin_strdup");
  from = strcmp(argv[2], "to-plugin") == 0 ? &program : &plugin;
  to = strcmp(argv[2], "to-main") == 0 ? &program : &plugin;
  body(NULL);
  thread_run(body, NULL);
  CHECK(dlclose(library) == 0);
  return 0;
}
