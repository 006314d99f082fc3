/* Blocks travel around a circle of four threads through bounded rings: each thread allocates,
 * stamps and sends to the next, and checks and frees what it gets.  Every block is freed by another
 * thread than the one that allocated it. */
#include <sched.h>
#include <stdatomic.h>

#include "api/random.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

enum { THREADS = 4, RING_SLOTS = 512, BLOCKS_EACH = 250000 };

typedef struct {
  void *block;
  size_t bytes;
  uint64_t seed;
} parcel;

/* One writer, one reader. */
typedef struct {
  parcel slots[RING_SLOTS];
  atomic_size_t written, read;
} ring;

static ring rings[THREADS];

static bool ring_put(ring *to, parcel what) {
  size_t written = atomic_load_explicit(&to->written, memory_order_relaxed);
  if (written - atomic_load_explicit(&to->read, memory_order_acquire) == RING_SLOTS) return false;
  to->slots[written % RING_SLOTS] = what;
  atomic_store_explicit(&to->written, written + 1, memory_order_release);
  return true;
}

static bool ring_get(ring *from, parcel *what) {
  size_t read = atomic_load_explicit(&from->read, memory_order_relaxed);
  if (read == atomic_load_explicit(&from->written, memory_order_acquire)) return false;
  *what = from->slots[read % RING_SLOTS];
  atomic_store_explicit(&from->read, read + 1, memory_order_release);
  return true;
}

/* Mostly small; the head of a large block is enough to see whether somebody else has it. */
static size_t random_size(uint64_t *random) {
  size_t kind = random_below(random, 1000);
  return kind < 900   ? random_between(random, 1, KIB)
         : kind < 990 ? random_between(random, KIB, 32 * KIB)
         : kind < 999 ? random_between(random, 32 * KIB, MIB)
                      : random_between(random, MIB, 3 * MIB);
}

static size_t stamped(size_t bytes) { return bytes < 2 * KIB ? bytes : 2 * KIB; }

static parcel pack(uint64_t *random) {
  parcel made = {NULL, random_size(random), random_next(random)};
  made.block = MUST(malloc(made.bytes));
  stamp_write(made.block, stamped(made.bytes), made.seed);
  return made;
}

static void *body(void *number) {
  size_t self = (size_t)number, sent = 0, received = 0;
  ring *to = &rings[self], *from = &rings[(self + THREADS - 1) % THREADS];
  uint64_t random = random_seed(self);
  parcel outgoing = pack(&random), incoming;
  while (sent < BLOCKS_EACH || received < BLOCKS_EACH) {
    bool moved = false;
    if (sent < BLOCKS_EACH && ring_put(to, outgoing)) {
      moved = true;
      if (++sent < BLOCKS_EACH) outgoing = pack(&random);
    }
    if (ring_get(from, &incoming)) {
      moved = true;
      received++;
      CHECK(stamp_holds(incoming.block, stamped(incoming.bytes), incoming.seed));
      free(incoming.block);
    }
    if (!moved) sched_yield();
  }
  return NULL;
}

int main(void) {
  threads_run(THREADS, body);
  return 0;
}
