/* Sequences of calls by up to four threads against a shadow model.
 *
 * The input is the schedule: each operation names the thread that makes it, and the others rest
 * meanwhile, so that the same bytes are the same run.  Operations also refuse system calls to the
 * library, let time pass and end threads.  The model knows every live block: its size, its usable
 * size and its content; a call may fail only when the system refused something to it, and when all
 * is freed nothing is left.
 *
 *   byte 0       a profile of options
 *   then         operation and thread | slot | size, 2 bytes | what the operation wants more */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "config/options.h"
#include "fake/os_fake.h"
#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "observe/snapshot.h"
#include "pool/slab_pool.h"
#include "slab/adopt.h"

enum {
  ACTORS = 4,
  SLOTS = 512,
  OPERATIONS_MAX = 1500,
  BURST_MAX = 128,
  BURST_SIZE_MAX = 80 << 10,
  EDGE_BYTES = 256
};
enum { STEP_BYTES = 32 << 10, LIVE_MAX_BYTES = 64 << 20 };

/* ---- the model ------------------------------------------------------------------------------- */

struct shadow {
  unsigned char *block; /* NULL: nothing lives here */
  size_t size, usable_bytes;
  size_t
      alignment; /* what was asked for; 0 after an expansion, when no size is the one asked for */
  uint8_t seed;
};

static struct shadow slots[SLOTS];
static size_t live_bytes;
static uint8_t next_seed;

/* Both edges in full and a byte here and there between: enough to notice any other owner. */
static bool is_marked_at(size_t at, size_t size) {
  return at < EDGE_BYTES || at + EDGE_BYTES >= size || at % STEP_BYTES == 0;
}

static size_t next_marked(size_t at, size_t size) {
  if (is_marked_at(at + 1, size)) return at + 1;
  size_t next = (at / STEP_BYTES + 1) * STEP_BYTES;
  return next < size - EDGE_BYTES ? next : size - EDGE_BYTES;
}

static uint8_t mark_at(uint8_t seed, size_t at) { return (uint8_t)(seed + at * 31 + (at >> 8)); }

static void mark(const struct shadow *shadow) {
  for (size_t at = 0; at < shadow->size; at = next_marked(at, shadow->size))
    shadow->block[at] = mark_at(shadow->seed, at);
}

/* The first kept_bytes of what mark wrote. */
static void check_mark(const struct shadow *shadow, size_t kept_bytes) {
  size_t end = kept_bytes < shadow->size ? kept_bytes : shadow->size;
  for (size_t at = 0; at < end; at = next_marked(at, shadow->size))
    REQUIRE(shadow->block[at] == mark_at(shadow->seed, at));
}

static void check_zero(const unsigned char *block, size_t size) {
  for (size_t at = 0; at < size; at = next_marked(at, size)) REQUIRE(block[at] == 0);
}

static void check_usable(const struct shadow *shadow) {
  REQUIRE(hak_malloc_usable_size(shadow->block) == shadow->usable_bytes);
}

static void enter(struct shadow *shadow, void *block, size_t size, size_t alignment) {
  shadow->block = block;
  shadow->alignment = alignment;
  shadow->size = size;
  shadow->usable_bytes = hak_malloc_usable_size(block);
  shadow->seed = next_seed++;
  live_bytes += size;
  REQUIRE(shadow->usable_bytes >= size);
  REQUIRE(hak_owns(block));
  mark(shadow);
}

static void leave(struct shadow *shadow) {
  live_bytes -= shadow->size;
  shadow->block = NULL;
}

/* ---- operations ------------------------------------------------------------------------------ */

enum operation {
  MALLOC,
  CALLOC,
  ALIGNED,
  POSIX_MEMALIGN,
  REALLOC,
  FREE,
  FREE_SIZED,
  EXPAND,
  MALLOC_SITE,
  REZALLOC,
  BURST_MALLOC,
  BURST_FREE,
  PURGE,
  PASS_TIME,
  REFUSE,
  END_THREAD
};

struct step {
  enum operation operation;
  struct shadow *shadow;
  size_t size;
  uint8_t extra;
};

/* Mostly small; the edges of all tiers are near. */
static size_t size_of_code(size_t code) {
  static const size_t edges[] = {0,     8,        16,      128,     1024,           4096,
                                 32768, 64 << 10, 1 << 20, 2 << 20, (4 << 20) - 64, 4 << 20};
  size_t kind = code & 15, number = code >> 4; /* number: 12 bits */
  if (kind < 8) return number & 1023;
  if (kind < 11) return number * 8 + 1;
  if (kind < 12) return number * 256 + 1;
  if (kind < 13) return number * 1024 + 1;
  return edges[number % (sizeof edges / sizeof edges[0])] + (number >> 4) % 3;
}

static uint64_t refusals(void) { return load_relaxed(&os_fake.refused_calls); }

/* NULL is right only when the system said no during this call. */
static bool judge(const void *block, uint64_t refusals_before) {
  if (block) return true;
  REQUIRE(errno == ENOMEM && refusals() != refusals_before);
  return false;
}

static size_t alignment_of(const struct step *step) { return (size_t)16 << step->extra % 18; }

static void *allocate(const struct step *step) {
  void *block = NULL;
  switch (step->operation) {
    case CALLOC:
      block = hak_calloc(1, step->size);
      if (block) check_zero(block, step->size);
      return block;
    case ALIGNED: return hak_aligned_alloc(alignment_of(step), step->size);
    case POSIX_MEMALIGN:
      errno = hak_posix_memalign(&block, alignment_of(step), step->size);
      return block;
    case MALLOC_SITE: return hak_malloc_site(step->size, step->extra);
    case REZALLOC: return hak_rezalloc(NULL, step->size);
    case REALLOC: return hak_realloc(NULL, step->size);
    default: return hak_malloc(step->size);
  }
}

static void do_allocate(const struct step *step) {
  if (live_bytes + step->size > LIVE_MAX_BYTES) return;
  uint64_t before = refusals();
  errno = 0;
  void *block = allocate(step);
  if (!judge(block, before)) return;
  size_t natural = step->size <= 8 ? 8 : 16;
  bool is_aligned = step->operation == ALIGNED || step->operation == POSIX_MEMALIGN;
  REQUIRE((uintptr_t)block % (is_aligned ? alignment_of(step) : natural) == 0);
  enter(step->shadow, block, step->size, is_aligned ? alignment_of(step) : 1);
}

static void do_free(const struct step *step) {
  struct shadow *shadow = step->shadow;
  check_usable(shadow);
  check_mark(shadow, shadow->size);
  errno = 77;
  if (step->operation == FREE_SIZED && shadow->alignment > 1)
    hak_free_aligned_sized(shadow->block, shadow->alignment, shadow->size);
  else if (step->operation == FREE_SIZED && shadow->alignment)
    hak_free_sized(shadow->block, shadow->size);
  else
    hak_free(shadow->block);
  REQUIRE(errno == 77);
  leave(shadow);
}

static void do_resize(const struct step *step) {
  struct shadow *shadow = step->shadow;
  if (step->size == 0 || live_bytes + step->size > LIVE_MAX_BYTES) return;
  uint64_t before = refusals();
  struct shadow old = *shadow;
  check_mark(shadow, shadow->size);
  errno = 0;
  void *block = step->operation == REZALLOC ? hak_rezalloc(shadow->block, step->size)
                                            : hak_realloc(shadow->block, step->size);
  if (!judge(block, before)) {
    check_usable(&old);
    check_mark(&old, old.size);
    return;
  }
  old.block = block;
  check_mark(&old, step->size);
  leave(shadow);
  enter(shadow, block, step->size, 1);
}

static void do_expand(const struct step *step) {
  struct shadow *shadow = step->shadow;
  if (live_bytes + step->size > LIVE_MAX_BYTES) return;
  void *block = hak_expand(shadow->block, step->size);
  REQUIRE(!block || block == shadow->block);
  if (!block) {
    check_usable(shadow);
    check_mark(shadow, shadow->size);
    return;
  }
  check_mark(shadow, step->size);
  leave(shadow);
  enter(shadow, block, step->size, 0);
}

static void do_burst(const struct step *step) {
  struct step one = {.operation = step->operation == BURST_FREE ? FREE : MALLOC,
                     .size = step->size % BURST_SIZE_MAX};
  size_t first = (size_t)(step->shadow - slots), stride = step->extra >> 7 ? 3 : 1;
  for (size_t index = 0; index < 2 + (size_t)step->extra % BURST_MAX; index++) {
    one.shadow = &slots[(first + index * stride) % SLOTS];
    if (one.operation == FREE && one.shadow->block) do_free(&one);
    if (one.operation == MALLOC && !one.shadow->block) do_allocate(&one);
  }
}

static void do_refuse(const struct step *step) {
  uint64_t first = 1 + step->size % 16;
  if (step->extra % 4 == 0)
    os_fake_fail_none();
  else
    os_fake_fail(OS_CALLS_ALL, first, first + (step->extra >> 2) % 32);
}

static void do_step(const struct step *step) {
  bool is_live = step->shadow->block != NULL;
  switch (step->operation) {
    case MALLOC:
    case CALLOC:
    case ALIGNED:
    case POSIX_MEMALIGN:
    case MALLOC_SITE: (is_live ? do_free : do_allocate)(step); break;
    case REALLOC:
    case REZALLOC: (is_live ? do_resize : do_allocate)(step); break;
    case FREE:
    case FREE_SIZED:
      if (is_live) do_free(step);
      break;
    case EXPAND:
      if (is_live) do_expand(step);
      break;
    case BURST_MALLOC:
    case BURST_FREE: do_burst(step); break;
    case PURGE: step->extra % 3 ? (void)hak_purge(step->extra % 2 != 0) : hak_thread_idle(); break;
    case PASS_TIME: os_fake_advance_ms(step->extra * UINT64_C(20)); break;
    case REFUSE: do_refuse(step); break;
    case END_THREAD: break; /* by who tells the threads what to do */
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct actor {
  pthread_t thread;
  sem_t may_go, is_done;
  const struct step *step; /* NULL: end */
  bool is_running;
} actors[ACTORS];

static void *act(void *argument) {
  struct actor *actor = argument;
  for (;;) {
    while (sem_wait(&actor->may_go) != 0) continue;
    if (!actor->step) return NULL;
    do_step(actor->step);
    sem_post(&actor->is_done);
  }
}

static void end_actor(struct actor *actor) {
  if (!actor->is_running) return;
  actor->step = NULL;
  sem_post(&actor->may_go);
  REQUIRE(pthread_join(actor->thread, NULL) == 0);
  sem_destroy(&actor->may_go);
  sem_destroy(&actor->is_done);
  actor->is_running = false;
}

static void start_actor(struct actor *actor) {
  sem_init(&actor->may_go, 0, 0);
  sem_init(&actor->is_done, 0, 0);
  REQUIRE(pthread_create(&actor->thread, NULL, act, actor) == 0);
  actor->is_running = true;
}

/* Number 0 is the thread that reads the input. */
static void let_act(unsigned number, const struct step *step) {
  struct actor *actor = &actors[number];
  if (step->operation == END_THREAD) {
    end_actor(actor);
  } else if (number == 0) {
    do_step(step);
  } else {
    if (!actor->is_running) start_actor(actor);
    actor->step = step;
    sem_post(&actor->may_go);
    while (sem_wait(&actor->is_done) != 0) continue;
  }
}

/* ---- an input -------------------------------------------------------------------------------- */

static void choose_options(uint8_t profile) {
  static struct options defaults;
  static struct route_p conditions;
  static uint64_t kept_max;
  static bool has_defaults;
  if (!has_defaults) {
    hak_free(hak_malloc(1)); /* options are read once, before they are changed here */
    defaults = options;
    conditions = route_p;
    kept_max = superslabs_kept_max;
    has_defaults = true;
  }
  options = defaults;
  options.helper_thread = 0; /* it would be a thread without a schedule */
  if (profile & 1) options.decay_ms = 0;
  superslabs_kept_max = profile & 2 ? 0 : kept_max;
  if (profile & 2) options.big_cache_bytes = 0;
  route_p = profile & 4 ? (struct route_p){.remote_min = 1} : conditions;
  if (profile & 8) options.route_p = false;
  if (profile & 16) options.prefault = true;
}

static void run(struct input *input) {
  for (unsigned count = 0; count < OPERATIONS_MAX && !input_is_empty(input); count++) {
    uint8_t what = input_byte(input);
    struct step step = {.operation = what & 15};
    size_t slot = input_byte(input);
    step.shadow = &slots[(slot | (size_t)(what >> 6) << 8) % SLOTS];
    step.size = size_of_code(input_word(input));
    step.extra = input_byte(input);
    let_act(what >> 4 & (ACTORS - 1), &step);
  }
}

static void require_nothing_is_left(void) {
  struct snapshot snapshot;
  struct step step = {.operation = FREE};
  os_fake_fail_none();
  for (size_t slot = 0; slot < SLOTS; slot++) {
    step.shadow = &slots[slot];
    if (step.shadow->block) do_free(&step);
  }
  for (unsigned number = 0; number < ACTORS; number++) end_actor(&actors[number]);
  hak_purge(true);
  snapshot_take(&snapshot);
  REQUIRE(snapshot.big_live_bytes == 0);
  REQUIRE(snapshot.large_live_bytes == 0);
  REQUIRE(snapshot.slab_bytes_out == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, data + size};
  choose_options(input_byte(&input));
  run(&input);
  require_nothing_is_left();
  return 0;
}
