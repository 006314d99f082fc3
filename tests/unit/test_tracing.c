/* src/heap/tracing.c and src/profile/trace_ring.c: a recording says what the program did, and the
 * program does what it did before. */
#include "heap/tracing.h"

#include "profile/control.h"
#include "profile/trace_ring.h"
#include "profiles.h"

enum { LIVE = 500, STEPS = 20000 };

static void trace(uint64_t lease_ms) {
  store_relaxed(&profile_control.trace_lease_ms, lease_ms);
  publish();
}
static void trace_on(void) { trace(UINT64_MAX); }
static bool is_traced(void) { return heap_is_armed_by(heap_of_thread, ARMED_BY_TRACE); }

/* ---- a reader, as the tool is ---------------------------------------------------------------- */

struct event {
  enum trace_operation operation;
  uintptr_t address;
  uint64_t size;
  unsigned alignment;
};

static uint64_t read_at, last_time, last_clock, clock_time, lost, thread_id, next_size, power,
    slab_sizes[TRACE_SLABS];
static uintptr_t region;

static uint64_t read_word(struct trace_ring *ring, enum trace_operation *operation) {
  uint32_t word = load_relaxed(&ring->words[read_at++ % TRACE_RING_WORDS]);
  *operation = word & low_bits(TRACE_OPERATION_BITS);
  return word >> TRACE_OPERATION_BITS;
}

static uint64_t read_parts(struct trace_ring *ring, uint64_t first, unsigned count) {
  enum trace_operation operation = TRACE_CLOCK;
  for (unsigned part = 1; part < count; part++) {
    first |= read_word(ring, &operation) << (part * 29);
    REQUIRE(operation == TRACE_CLOCK);
  }
  return first;
}

static void read_size(uint64_t what) {
  uint64_t part = what & low_bits(TRACE_SIZE_BITS);
  switch (what >> TRACE_SIZE_BITS) {
    case 0: next_size |= part; break;
    case 1: next_size |= part << TRACE_SIZE_BITS; break;
    default: power = part;
  }
}

static bool next(struct trace_ring *ring, struct event *event) {
  bool has_size = false;
  while (read_at != load_relaxed(&ring->written)) {
    enum trace_operation operation;
    uint64_t what = read_word(ring, &operation);
    uintptr_t address = region << 32 | what << TRACE_OPERATION_BITS;
    uint64_t *last = trace_size_of_slab(ring, address) - ring->sizes + slab_sizes;
    *event = (struct event){operation, address, next_size, (unsigned)power};
    switch (operation) {
      case TRACE_CLOCK:
        last_time = read_parts(ring, what, 3);
        last_clock = read_parts(ring, read_word(ring, &operation), 3);
        lost += read_word(ring, &operation);
        thread_id = read_word(ring, &operation);
        clock_time = last_time;
        break;
      case TRACE_TIME:
        REQUIRE(clock_time + what >= last_time);
        last_time = clock_time + what;
        break;
      case TRACE_REGION: region = what; break;
      case TRACE_SIZE:
        read_size(what);
        has_size = true;
        break;
      case TRACE_TAKE:
        if (has_size)
          *last = next_size;
        else
          event->size = *last; /* falls through */
      case TRACE_FREE:
      case TRACE_RESIZE: next_size = power = 0; return true;
    }
  }
  store_release(&ring->read, read_at); /* as the tool's write, after what was read */
  return false;
}

static struct event only_event(void) {
  struct event event, another;
  REQUIRE(next(heap_of_thread->ring, &event));
  REQUIRE(!next(heap_of_thread->ring, &another));
  return event;
}

static void require_event(enum trace_operation operation, const void *block, uint64_t size,
                          unsigned alignment) {
  struct event event = only_event();
  REQUIRE(event.operation == operation && event.address == (uintptr_t)block);
  REQUIRE(event.size == size && event.alignment == alignment);
}

/* ---- each way to a block --------------------------------------------------------------------- */

static void begin(void) {
  start_library();
  hak_free(must_malloc(64));
  trace_on();
  hak_free(must_malloc(8)); /* looks */
  struct event event;
  while (next(heap_of_thread->ring, &event)) {
  }
  REQUIRE(is_traced() && last_clock && last_time);
}

CHILD_TEST(each_call) {
  begin();
  void *block = must_malloc(100), *aligned;
  require_event(TRACE_TAKE, block, 100, 0);
  block = hak_realloc(block, 104); /* stays, or moves within its class */
  require_event(TRACE_RESIZE, block, 104, 0);
  hak_free(block);
  require_event(TRACE_FREE, block, 0, 0);
  REQUIRE(must_malloc(100) == block); /* the magazine's last, as without */
  require_event(TRACE_TAKE, block, 100, 0);
  block = must_malloc(300000);
  require_event(TRACE_TAKE, block, 300000, 0);
  hak_free(block);
  require_event(TRACE_FREE, block, 0, 0);
  REQUIRE(hak_posix_memalign(&aligned, 4096, 50) == 0);
  require_event(TRACE_TAKE, aligned, 50, 12);
  hak_free(aligned);
  require_event(TRACE_FREE, aligned, 0, 0);
  block = hak_calloc(3, 1024);
  require_event(TRACE_TAKE, block, 3072, 0);
  void *moved = hak_realloc(block, 20000);
  struct event event;
  REQUIRE(next(heap_of_thread->ring, &event) && event.operation == TRACE_RESIZE && !event.size);
  REQUIRE(next(heap_of_thread->ring, &event) && event.operation == TRACE_TAKE);
  REQUIRE(event.address == (uintptr_t)moved && event.size == 20000);
  require_event(TRACE_FREE, block, 0, 0);
  hak_heap *heap = hak_heap_new("one");
  for (unsigned turn = 0; turn < 2; turn++) { /* with a new slab, and with one that it has */
    block = hak_heap_malloc(heap, 70);
    require_event(TRACE_TAKE, block, 70, 0);
  }
  hak_free(block);
  require_event(TRACE_FREE, block, 0, 0);
}

/* A busy thread's allocations share a TIME: after a pause at most three do. */
CHILD_TEST(times) {
  void *blocks[32];
  begin();
  for (unsigned turn = 0; turn < 8; turn++) {
    for (unsigned i = 0; i < 32; i++) blocks[i] = must_malloc(64);
    for (unsigned i = 0; i < 32; i++) hak_free(blocks[i]);
    for (unsigned i = 0; i < 24; i++) must_malloc(64);
    uint64_t paused = cpu_ticks() + ((uint64_t)2 << CPU_TICKS_SHIFT);
    while (cpu_ticks() < paused) cpu_relax();
    for (unsigned i = 0; i < 4; i++) must_malloc(64);
    while (next(heap_of_thread->ring, &(struct event){0})) continue;
    REQUIRE(last_time >= paused);
  }
}

/* A block that mremap moves may begin elsewhere in its first page. */
CHILD_TEST(grow) {
  begin();
  uintptr_t address = 0;
  uint64_t size = 0;
  void *block = NULL;
  for (size_t wanted = 1000; wanted < (size_t)64 << 20; wanted += wanted / 2) {
    block = hak_realloc(block, wanted);
    for (struct event event; next(heap_of_thread->ring, &event);) {
      if (event.operation != TRACE_FREE && event.size) address = event.address, size = event.size;
    }
    REQUIRE(address == (uintptr_t)block && size == wanted);
  }
}

/* ---- whole programs -------------------------------------------------------------------------- */

static struct event shadow[LIVE];

static void follow(struct trace_ring *ring) {
  for (struct event event; next(ring, &event);) {
    unsigned at = 0;
    while (at < LIVE && shadow[at].address != (event.operation == TRACE_FREE ? event.address : 0))
      at++;
    REQUIRE(at < LIVE);
    shadow[at] = event.operation == TRACE_FREE ? (struct event){0} : event;
  }
}

static void require_shadow(void *const *live, const size_t *sizes) {
  for (unsigned index = 0; index < LIVE; index++) {
    unsigned at = 0;
    while (at < LIVE && shadow[at].address != (uintptr_t)live[index]) at++;
    REQUIRE(at < LIVE && shadow[at].size == sizes[index]);
  }
}

static void work(void) {
  static void *live[LIVE];
  static size_t sizes[LIVE];
  uint64_t random = 7;
  for (unsigned step = 0; step < STEPS; step++) {
    unsigned at = step < LIVE ? step : (unsigned)random_below(&random, LIVE);
    if (live[at]) hak_free(live[at]);
    sizes[at] = 1 + random_below(&random, 1u << random_below(&random, 20));
    live[at] = must_malloc(sizes[at]);
    if (step % 1000 == 999) follow(heap_of_thread->ring);
  }
  follow(heap_of_thread->ring);
  require_shadow(live, sizes);
  for (unsigned index = 0; index < LIVE; index++) hak_free(live[index]);
  follow(heap_of_thread->ring);
}

CHILD_TEST(program) {
  begin();
  work();
  REQUIRE(!lost);
}

/* With a profile on as well no malloc passes unseen. */
CHILD_TEST(profiled_program) {
  begin();
  switch_on(4096);
  work();
  REQUIRE(2 * estimate_sites(false).blocks > (double)STEPS);
}

static void *in_a_thread(void *unused) {
  hak_free(must_malloc(200));
  struct event event;
  read_at = last_time = 0;
  while (next(heap_of_thread->ring, &event)) {
  }
  REQUIRE(thread_id == thread_number());
  return unused;
}

/* ---- on and off ------------------------------------------------------------------------------ */

CHILD_TEST(off) {
  begin();
  trace(0);
  hak_free(must_malloc(64)); /* looks */
  REQUIRE(!is_traced() && heap_of_thread->tag == MAP_TAG_THREADS);
  uint64_t written = load_relaxed(&heap_of_thread->ring->written);
  for (unsigned step = 0; step < 100; step++) hak_free(must_malloc(64));
  REQUIRE(load_relaxed(&heap_of_thread->ring->written) == written);
  trace_on();
  hak_free(must_malloc(64));
  REQUIRE(is_traced());
}

static const size_t ring_bytes = 4 * TRACE_RING_WORDS;

/* What has been read; of threads that have ended, too. */
CHILD_TEST(rings_give_their_memory_back) {
  const size_t least = ring_bytes - 2 * os_page_bytes();
  begin();
  on_a_thread(in_a_thread, NULL);
  hak_free(must_malloc(64));
  read_at = load_relaxed(&heap_of_thread->ring->read);
  uint64_t before = load_relaxed(&totals.committed_bytes);
  trace(0);
  hak_free(must_malloc(64));
  uint64_t given = before - load_relaxed(&totals.committed_bytes);
  REQUIRE(given >= least && given < 2 * least);
  while (next(heap_of_thread->ring, &(struct event){0})) {
  }
  trace(0);
  hak_free(must_malloc(64));
  REQUIRE(before - load_relaxed(&totals.committed_bytes) >= given + least);
  trace_on();
  hak_free(must_malloc(64));
  REQUIRE(before - load_relaxed(&totals.committed_bytes) == given);
}

/* Also where the thread that looks has none. */
CHILD_TEST(ring_of_an_ended_thread) {
  start_library();
  hak_free(must_malloc(64));
  trace_on();
  on_a_thread(in_a_thread, NULL);
  uint64_t before = load_relaxed(&totals.committed_bytes);
  trace(0);
  hak_free(must_malloc(64));
  REQUIRE(before - load_relaxed(&totals.committed_bytes) >= ring_bytes - 2 * os_page_bytes());
}

static void *end_after_the_trace(void *purged) {
  in_a_thread(NULL);
  *(uint64_t *)purged = load_relaxed(&totals.committed_bytes);
  trace(0);
  return NULL;
}

CHILD_TEST(ring_of_a_thread_that_ends_later) {
  start_library();
  trace_on();
  uint64_t before;
  on_a_thread(end_after_the_trace, &before);
  REQUIRE(before - load_relaxed(&totals.committed_bytes) >= ring_bytes - 2 * os_page_bytes());
}

/* No tool reads the rings of a forked child. */
CHILD_TEST(ring_of_a_child) {
  begin();
  hak_free(must_malloc(64));
  profile_after_fork();
  hak_free(must_malloc(64));
  REQUIRE(!is_traced() && heap_of_thread->ring->purged_bytes);
}

/* A thread looks after some bytes, too: what it then takes is recorded. */
CHILD_TEST(begin_while_a_profile_counts) {
  start_library();
  hak_free(must_malloc(64));
  const struct magazine *magazine = &heap_of_thread->magazines[slab_class_of(64, 1)];
  switch_on((uint64_t)1 << 40);
  for (unsigned turn = 0; turn < 3; turn++) hak_free(must_malloc(64));
  REQUIRE(magazine->passes);
  store_relaxed(&profile_control.trace_lease_ms, UINT64_MAX);
  for (unsigned turn = 0; turn < 1000000 && !is_traced(); turn++) must_malloc(64);
  REQUIRE(is_traced() && !magazine->passes);
}

/* A tool that dies does not end it: the lease does. */
CHILD_TEST(lease) {
  start_library();
  hak_free(must_malloc(64));
  trace(os_now_coarse_ms() + 1000);
  hak_free(must_malloc(64));
  REQUIRE(is_traced());
  os_fake_advance_ms(2000);
  for (unsigned step = 0; is_traced() && step < 100000000; step++) hak_free(must_malloc(64));
  REQUIRE(!is_traced() && heap_of_thread->ring->purged_bytes);
}

/* Nobody reads: the ring keeps its first words, and counts the rest; another thread that has it
 * since is named later. */
CHILD_TEST(full) {
  begin();
  for (unsigned step = 0; step < TRACE_RING_WORDS; step++) hak_free(must_malloc(64));
  REQUIRE(trace_ring_begin(heap_of_thread->ring, 77));
  struct event event;
  unsigned seen = 0;
  while (next(heap_of_thread->ring, &event)) seen++;
  hak_free(must_malloc(64));
  while (next(heap_of_thread->ring, &event)) seen++;
  REQUIRE(seen > TRACE_RING_WORDS / 2 && seen + lost == 2 * TRACE_RING_WORDS + 2);
  REQUIRE(thread_id == 77);
}

CHILD_TEST(threads) {
  begin();
  on_a_thread(in_a_thread, NULL);
  on_a_thread(in_a_thread, NULL); /* in the same heap */
}

CHILD_TEST(refused) {
  start_library();
  store_relaxed(&profile_state.status, PROFILE_IS_REFUSED);
  trace_on();
  hak_free(must_malloc(64));
  REQUIRE(!is_traced());
}
