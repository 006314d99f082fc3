/* simulate.c: replays a trace on simulated heaps, one for each policy, and prints the memory and
 * batches that each needs.
 *
 *   simulate events [cache=KiB] [own=KiB] [steady=N] [lines=0|1] [lend=0|1] [fit=0|1] ...
 *
 * Each argument after the events is one policy: "cache=32,own=256,steady=8,lines=1". `cache` bounds
 * a thread's cache of a class; `own` is the number of KiB that a thread must hold of a class, at
 * `steady` refills one after the other, to get slabs of its own ("own=0": from its first block on,
 * as hakmem does; none: never). `lines`: no block is handed out on a line of which another thread
 * has a block. `lend`: a thread without used blocks in its slabs takes those of other owners before
 * fresh ones. `fit`: where more than half of a class's requests have one size, a class of that size
 * is made (docs/decisions/0049), by a count of all requests. Blocks above MID_MAX_BYTES count as
 * they are and are in no slab. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "traces/slabs.h"

/* As cli.py writes them, in the order of the trace. */
struct event {
  uint32_t life, size;
  uint16_t thread; /* from 1 to THREAD_MAX - 1 */
  uint8_t is_take, is_last;
};

/* ---- policies -------------------------------------------------------------------------------- */

struct policy {
  const char *text;
  size_t cache_bytes, own_bytes; /* own_bytes SIZE_MAX: never */
  unsigned steady;
  bool keeps_lines, lends, fits;
};

static struct policy policy_of(const char *text) {
  struct policy policy = {
      .text = text, .cache_bytes = 32 << 10, .own_bytes = SIZE_MAX, .steady = 1};
  for (const char *at = text; at && *at; at = strchr(at, ','), at += at != NULL) {
    unsigned long value = 0;
    if (sscanf(at, "cache=%lu", &value) == 1)
      policy.cache_bytes = value << 10;
    else if (sscanf(at, "own=%lu", &value) == 1)
      policy.own_bytes = value << 10;
    else if (sscanf(at, "steady=%lu", &value) == 1)
      policy.steady = (unsigned)value;
    else if (sscanf(at, "lines=%lu", &value) == 1)
      policy.keeps_lines = value != 0;
    else if (sscanf(at, "lend=%lu", &value) == 1)
      policy.lends = value != 0;
    else if (sscanf(at, "fit=%lu", &value) == 1)
      policy.fits = value != 0;
    else {
      fprintf(stderr,
              "simulate: %s: a policy is cache=KiB, own=KiB, steady=N, lines=0|1, lend=0|1, "
              "fit=0|1 with commas between\n",
              text);
      exit(2);
    }
  }
  return policy;
}

/* ---- caches ---------------------------------------------------------------------------------- */

struct cache {
  struct block *blocks; /* the youngest last */
  uint32_t count, capacity;
  int64_t held_bytes; /* taken from slabs, less what went back */
  unsigned streak;    /* refills, or flushes, in a row that speak for a change */
};

struct run {
  struct policy policy;
  struct slabs slabs;
  struct cache caches[THREAD_MAX][SLAB_CLASS_COUNT];
  uint16_t last_visitor[SLAB_CLASS_COUNT];
  uint64_t live[SLAB_CLASS_COUNT], requests[SLAB_CLASS_COUNT]; /* blocks; all so far */
  uint64_t votes[FITTED_MAX_BYTES / 16 + 1];                   /* of them, by their step */
  uint64_t
      visits; /* batches to and from slabs that are not the thread's own; of each foreign owner one */
  uint64_t
      transfers; /* of them, those whose last one was another thread's: a line of another core */
};

static void visit(struct run *run, uint16_t thread, unsigned class) {
  run->visits++;
  run->transfers += run->last_visitor[class] != thread;
  run->last_visitor[class] = thread;
}

static struct cache *cache_of(struct run *run, uint16_t thread, unsigned class) {
  struct cache *cache = &run->caches[thread][class];
  if (cache->blocks) return cache;
  size_t capacity = run->policy.cache_bytes / class_bytes(class);
  cache->capacity = capacity < 2 ? 2 : capacity > 512 ? 512 : (uint32_t)capacity;
  if (!(cache->blocks = calloc(cache->capacity, sizeof *cache->blocks))) abort();
  if (!run->policy.own_bytes) slabs_claim(&run->slabs, thread, class);
  return cache;
}

/* Ownership is earned by what a thread holds at its refills, and lost by the same at its flushes,
 * at half of it. */
static void judge(struct run *run, struct cache *cache, uint16_t thread, unsigned class) {
  if (!run->policy.own_bytes || run->policy.own_bytes == SIZE_MAX) return;
  bool owns = run->slabs.owns[thread][class];
  bool speaks = owns ? cache->held_bytes < (int64_t)run->policy.own_bytes / 2
                     : cache->held_bytes >= (int64_t)run->policy.own_bytes;
  cache->streak = speaks ? cache->streak + 1 : 0;
  if (cache->streak < run->policy.steady) return;
  cache->streak = 0;
  if (owns)
    slabs_release(&run->slabs, thread, class);
  else
    slabs_claim(&run->slabs, thread, class);
}

static void refill(struct run *run, struct cache *cache, uint16_t thread, unsigned class) {
  judge(run, cache, thread, class);
  bool owns = run->slabs.owns[thread][class], keeps_lines = run->policy.keeps_lines;
  if (owns && !run->slabs.lists[thread][class] && slabs_claim(&run->slabs, thread, class))
    visit(run, thread, class);
  for (size_t left = cache->capacity / 2; left;) {
    struct block *blocks = cache->blocks + cache->count;
    bool borrows = owns && run->policy.lends && !slabs_has_used(&run->slabs, thread, class);
    size_t count =
        borrows ? slabs_borrow(&run->slabs, thread, class, keeps_lines, blocks, left) : 0;
    bool is_own = owns && !count;
    if (!count)
      count = slabs_take(&run->slabs, owns ? thread : COMMONS, thread, class, keeps_lines, blocks,
                         left);
    cache->count += (uint32_t)count;
    cache->held_bytes += (int64_t)(count * class_bytes(class));
    if (!is_own) visit(run, thread, class);
    left = is_own ? left - count
                  : 0; /* of others' one word is enough: the next refill may find a fuller one */
  }
}

/* The oldest blocks go. Neighbours in the cache often have one owner, so a change of owner counts,
 * not each block. */
static void flush(struct run *run, struct cache *cache, uint16_t thread, unsigned class,
                  uint32_t count) {
  judge(run, cache, thread, class);
  uint16_t owner = thread;
  for (uint32_t i = 0; i < count; i++) {
    struct block block = cache->blocks[i];
    if (block.slab->owner != owner && (owner = block.slab->owner) != thread)
      visit(run, thread, class);
    slabs_give(&run->slabs, block);
  }
  cache->held_bytes -= (int64_t)(count * class_bytes(class));
  cache->count -= count;
  memmove(cache->blocks, cache->blocks + count, cache->count * sizeof *cache->blocks);
}

static struct block take(struct run *run, uint16_t thread, unsigned class) {
  struct cache *cache = cache_of(run, thread, class);
  if (!cache->count) refill(run, cache, thread, class);
  return cache->blocks[--cache->count];
}

static void give(struct run *run, uint16_t thread, unsigned class, struct block block) {
  struct cache *cache = cache_of(run, thread, class);
  if (cache->count == cache->capacity) flush(run, cache, thread, class, cache->capacity / 2);
  cache->blocks[cache->count++] = block;
}

static void end_thread(struct run *run, uint16_t thread) {
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++) {
    struct cache *cache = &run->caches[thread][class];
    if (!cache->blocks) continue;
    flush(run, cache, thread, class, cache->count);
    slabs_release(&run->slabs, thread, class);
    free(cache->blocks);
    *cache = (struct cache){0};
  }
}

/* ---- classes that fit ------------------------------------------------------------------------ */

/* Its tables are not write-protected here. */
size_t os_page_bytes(void) { return 4096; }
bool os_commit(void *address, size_t bytes) { return address && bytes; }

static void fit(struct run *run, unsigned class, size_t size) {
  enum { WORTH_BYTES = 256 << 10, SAVED_PERCENT = 10 };
  size_t steps = (size + 15) / 16, bytes = class_bytes(class);
  if (!run->policy.fits || bytes > FITTED_MAX_BYTES || !size) return;
  bool has_most = ++run->votes[steps] * 2 > ++run->requests[class];
  if (has_most && steps * 1600 <= bytes * (100 - SAVED_PERCENT) &&
      run->live[class] * bytes >= WORTH_BYTES)
    class_make_fitted((uint32_t)steps * 16);
}

/* ---- the replay ------------------------------------------------------------------------------ */

struct figures {
  uint64_t takes, live_bytes, peak_bytes; /* of slab classes, rounded to their classes */
};

static void take_life(struct run *run, const struct event *event, struct block *life,
                      struct figures *figures) {
  unsigned class = class_of_size(event->size);
  *life = take(run, event->thread, class);
  run->live[class]++;
  fit(run, class, event->size);
  figures->takes++;
  figures->live_bytes += class_bytes(class);
  if (figures->live_bytes > figures->peak_bytes) figures->peak_bytes = figures->live_bytes;
}

static void free_life(struct run *run, uint16_t thread, struct block life,
                      struct figures *figures) {
  unsigned class = life.slab->class;
  give(run, thread, class, life);
  run->live[class]--;
  figures->live_bytes -= class_bytes(class);
}

static void replay(const struct event *events, size_t count, struct policy policy) {
  struct run *run = calloc(1, sizeof *run);
  struct block *lives = calloc(count, sizeof *lives); /* those of slab classes */
  if (!run || !lives) abort();
  run->policy = policy;
  struct figures figures = {0};
  for (const struct event *event = events; event < events + count; event++) {
    struct block *life = &lives[event->life];
    if (event->is_take && event->size <= MID_MAX_BYTES)
      take_life(run, event, life, &figures);
    else if (!event->is_take && life->slab)
      free_life(run, event->thread, *life, &figures);
    if (event->is_last) end_thread(run, event->thread);
  }
  double thousands = (double)figures.takes / 1000;
  double touched = (double)run->slabs.touched_pages * 4096;
  printf("%-32s\t%.2f\t%.2f\t%.3f\t%.2f\t%.2f\t%.3f\n", policy.text,
         (double)figures.peak_bytes / (1 << 20), touched / (1 << 20),
         touched / (double)figures.peak_bytes, (double)run->visits / thousands,
         (double)run->transfers / thousands, (double)run->slabs.shared_lines / thousands);
}

int main(int argc, char **argv) {
  int file = argc > 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
  struct stat stat;
  const struct event *events = MAP_FAILED;
  if (file >= 0 && fstat(file, &stat) == 0)
    events = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (events == MAP_FAILED) {
    fprintf(stderr, "usage: simulate events policy...; lab/traces/run writes the events\n");
    return 2;
  }
  printf("policy\tlive MiB\ttouched MiB\tratio\tvisits/1000\ttransfers/1000\tshared lines/1000\n");
  for (int i = 2; i < argc; i++) {
    fflush(stdout);
    pid_t child = fork(); /* each simulation begins in an empty process */
    if (!child) replay(events, (size_t)stat.st_size / sizeof *events, policy_of(argv[i])), exit(0);
    int status;
    if (waitpid(child, &status, 0) < 0 || status) return 1;
  }
}
