/* Arenas: blocks by MALLOCX_ARENA and by thread.arena are that arena's, and go with it; thread
 * caches by their numbers; settings that can be read back. */
#include "jemalloc/mallctl.h"

static size_t held_by(unsigned arena) {
  advance_epoch();
  return number_of("stats.arenas.%zu.small.allocated", arena, 0) +
         number_of("stats.arenas.%zu.large.allocated", arena, 0);
}

static int act(const char *format, unsigned arena) {
  char name[64];
  snprintf(name, sizeof name, format, arena);
  return mallctl(name, NULL, NULL, NULL, 0);
}

static void check_arena(void) {
  unsigned before = GET("arenas.narenas", unsigned), arena = GET("arenas.create", unsigned);
  CHECK(arena >= 1 && GET("arenas.narenas", unsigned) >= before);
  CHECK(held_by(arena) == 0);
  void *small = MUST(mallocx(100, ARENA(arena))), *large = MUST(mallocx(1 << 20, ARENA(arena)));
  size_t bytes = sallocx(small, 0) + sallocx(large, 0);
  CHECK(held_by(arena) == bytes);
  small = MUST(rallocx(small, 5000, ARENA(arena) | ZERO));
  CHECK(held_by(arena) == sallocx(small, 0) + sallocx(large, 0));
  dallocx(large, ARENA(arena));
  CHECK(held_by(arena) == sallocx(small, 0));
  CHECK(act("arena.%u.reset", arena) == 0 && held_by(arena) == 0);
  SET("thread.arena", unsigned, arena);
  CHECK(GET("thread.arena", unsigned) == arena);
  small = MUST(malloc(100));
  CHECK(!GET("thread.tcache.enabled", bool));
  SET("thread.arena", unsigned, 0);
  CHECK(GET("thread.arena", unsigned) == 0 && held_by(arena) == sallocx(small, 0));
  CHECK(act("arena.%u.destroy", arena) == 0 && act("arena.%u.destroy", arena) == ENOENT);
  CHECK(mallctl("thread.arena", NULL, NULL, &arena, sizeof arena) == EFAULT);
  CHECK(GET("arenas.create", unsigned) == arena); /* its number is used again */
}

static void check_refusals(void) {
  CHECK(act("arena.%u.reset", 0) == EFAULT && act("arena.%u.destroy", 0) == EFAULT);
  CHECK(act("arena.%u.purge", 5000) == ENOENT && act("arena.%u.purge", ALL_ARENAS) == 0);
  CHECK(act("arena.%u.purge", GET("arenas.narenas", unsigned)) == 0);
  CHECK(mallctl("arena.0.dirty_decay_ms", NULL, NULL, &(size_t){(size_t)-2}, 8) == EFAULT);
  unsigned arenas = GET("arenas.narenas", unsigned);
  size_t made = 0, bytes = sizeof made;
  CHECK(mallctl("arenas.create", &made, &bytes, NULL, 0) == EINVAL && !bytes);
  CHECK(mallctl("arenas.create", NULL, NULL, NULL, 0) == EINVAL);
  CHECK(GET("arenas.narenas", unsigned) == arenas);
  CHECK(mallctl("thread.allocatedp", NULL, NULL, NULL, 0) == ENOENT);
}

static void check_caches(void) {
  unsigned cache = GET("tcache.create", unsigned);
  free(MUST(mallocx(100, (int)(cache + 2) << 8)));
  SET("tcache.flush", unsigned, cache);
  SET("tcache.destroy", unsigned, cache);
  SET("thread.tcache.enabled", bool, false);
  CHECK(!GET("thread.tcache.enabled", bool) && GET("thread.arena", unsigned) == 0);
  void *block = MUST(malloc(100));
  SET("thread.tcache.enabled", bool, true);
  CHECK(GET("thread.tcache.enabled", bool));
  dallocx(block, NO_CACHE);
  dallocx(MUST(mallocx(100, NO_CACHE)), 0);
  ACT("thread.tcache.flush");
}

static void check_settings(void) {
  SET("background_thread", bool, false);
  SET("max_background_threads", size_t, 2);
  CHECK(!GET("background_thread", bool) && GET("max_background_threads", size_t) == 2);
  ssize_t usual = GET("arena.0.dirty_decay_ms", ssize_t);
  SET("arenas.dirty_decay_ms", ssize_t, -1);
  CHECK(GET("arena.0.dirty_decay_ms", ssize_t) == -1);
  SET("arena.4096.dirty_decay_ms", ssize_t, 0);
  CHECK(GET("arena.0.dirty_decay_ms", ssize_t) == usual);
  uint64_t epoch = GET("epoch", uint64_t);
  advance_epoch();
  CHECK(GET("epoch", uint64_t) == epoch + 1);
}

/* One looked up with less room is the beginning of the whole. */
static void check_mibs(void) {
  size_t whole[COMPONENTS], part[COMPONENTS], length = COMPONENTS, less = 2, bytes = 8, value;
  CHECK(mallctlnametomib("arenas.bin.3.size", whole, &length) == 0 && length == 4 && whole[2] == 3);
  CHECK(mallctlnametomib("arenas.bin.3.size", part, &less) == 0 && less == 2);
  CHECK(memcmp(whole, part, less * sizeof *part) == 0);
  for (whole[2] = 0; whole[2] < 40; whole[2]++) {
    int error = mallctlbymib(whole, length, &value, &bytes, NULL, 0);
    CHECK(error == (whole[2] < 39 ? 0 : ENOENT));
  }
  whole[2] = 0;
  for (size_t short_one = 0; short_one < length; short_one++)
    CHECK(mallctlbymib(whole, short_one, &value, &bytes, NULL, 0) == ENOENT);
  CHECK(mallctlbymib(whole, length + 1, &value, &bytes, NULL, 0) == ENOENT);
  CHECK(mallctl(NULL, NULL, NULL, NULL, 0) == ENOENT);
  CHECK(mallctlbymib(NULL, 4, NULL, NULL, NULL, 0) == ENOENT);
  CHECK(mallctlnametomib("epoch", NULL, NULL) == EINVAL);
}

int main(void) {
  check_arena();
  check_refusals();
  check_caches();
  check_settings();
  check_mibs();
  return 0;
}
