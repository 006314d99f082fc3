/* hak_profile_start and hak_profile_stop switch the process's heap profile: of this thread at once,
 * of another when it next allocates; with HAKMEM_PROFILE=never it is refused. */
#include <sched.h>
#include <stdatomic.h>

#include "concurrency/threads.h"
#include "hakmem/hakmem.h"

enum { BLOCKS = 1000, BYTES = 1000, TEXT_BYTES = 1 << 16 };

/* Blocks that a profile has seen, as the report has them. */
static unsigned long profiled_blocks(void) {
  static char text[TEXT_BYTES];
  static const char name[] = "\"profiled_blocks\":";
  unsigned long blocks = 0;
  CHECK(hak_stats_json(text, sizeof text) < sizeof text);
  for (const char *at = text; (at = strstr(at, name));)
    blocks += strtoul(at += sizeof name - 1, NULL, 10);
  return blocks;
}

static void *blocks[BLOCKS];

static void take(void) {
  for (size_t i = 0; i < BLOCKS; i++) blocks[i] = MUST(hak_malloc(BYTES));
}

static void give(void) {
  for (size_t i = 0; i < BLOCKS; i++) hak_free(blocks[i]);
}

static atomic_int step; /* of the other thread: what it shall do, and that it has */

static void *other_thread(void *unused) {
  for (int next = 1; next <= 3; next += 2) {
    take();
    give();
    if (next == 3) take(); /* the profile is on now */
    atomic_store(&step, next);
    while (atomic_load(&step) != next + 1) sched_yield();
  }
  give();
  return unused;
}

static void check_other_thread(void) {
  pthread_t thread = thread_start(other_thread, NULL);
  while (atomic_load(&step) != 1) sched_yield();
  unsigned long before = profiled_blocks();
  CHECK(hak_profile_start(64));
  atomic_store(&step, 2);
  while (atomic_load(&step) != 3) sched_yield();
  CHECK(profiled_blocks() >= before + BLOCKS - 10);
  hak_profile_stop();
  atomic_store(&step, 4);
  thread_join(thread);
}

int main(void) {
  const char *option = getenv("HAKMEM_PROFILE");
  if (option && strcmp(option, "never") == 0) {
    CHECK(!hak_profile_start(64));
    take();
    CHECK(profiled_blocks() == 0);
    hak_profile_stop();
    return 0;
  }
  take();
  give();
  CHECK(hak_profile_start(64));
  CHECK(profiled_blocks() == 0);
  take();
  CHECK(profiled_blocks() >= BLOCKS - 10);
  CHECK(!hak_heap_of(blocks[0])); /* nobody sees where samples lie */
  give();
  hak_profile_stop();
  unsigned long before = profiled_blocks();
  take();
  CHECK(profiled_blocks() == before);
  give();
  check_other_thread();
  CHECK(hak_profile_start(0)); /* again, at the rate that adapts */
  hak_profile_stop();
  return 0;
}
