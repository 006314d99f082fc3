/* loads.c: the loads. An operation is one malloc, one free, and a write and a read of the
 * block's first and last byte. Threads hand blocks over in memory of the load, whose lines are
 * not counted. */
#include "coherence.h"

#include <stdlib.h>

enum { WORK_NS = 20, LONGEST_WAIT_NS = 50000, PLACES = 512 };

struct block {
  char *address;
  size_t bytes;
};

static struct thread {
  uint64_t random;
  unsigned first, count; /* of the blocks: a ring, or an array */
  struct block blocks[PLACES];
} threads[CORES_MAX];
static unsigned thread_count;

static uint64_t random_below(uint64_t bound) {
  uint64_t *state = &threads[running_core()].random;
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return (*state >> 11) % bound;
}

static void touch(struct block block, bool is_write) {
  access_memory(block.address, 1, is_write, block.address, NULL);
  if ((uintptr_t)block.address / LINE_BYTES !=
      ((uintptr_t)block.address + block.bytes - 1) / LINE_BYTES)
    access_memory(block.address + block.bytes - 1, 1, is_write, block.address, NULL);
}

static struct block make(size_t least, size_t most) {
  struct block block = {.bytes = least + random_below(most - least + 1)};
  block.address = load_malloc(block.bytes);
  touch(block, true);
  pass_time(WORK_NS);
  return block;
}

/* The sizes of a server: every doubling from 16 bytes to 16 KiB is as likely as the next. */
static struct block make_of_server(void) {
  size_t least = (size_t)16 << random_below(10);
  return make(least, 2 * least);
}

static void end(struct block block) {
  if (!block.address) return;
  touch(block, false);
  load_free(block.address);
  count_operation();
}

static struct block exchange(struct block *place, struct block other) {
  struct block before = *place;
  *place = other;
  return before;
}

/* ---- rings of blocks from one thread to another ---------------------------------------------- */

static bool put(struct thread *to, struct block block) {
  if (to->count == PLACES) return false;
  to->blocks[(to->first + to->count++) % PLACES] = block;
  return true;
}

static bool take(struct thread *from, struct block *block) {
  if (!from->count) return false;
  *block = from->blocks[from->first];
  from->first = (from->first + 1) % PLACES;
  from->count--;
  return true;
}

/* Waits longer each time, as threads do that sleep. */
static void wait_after(uint64_t *waited) {
  *waited = *waited ? 2 * *waited : 100;
  if (*waited > LONGEST_WAIT_NS) *waited = LONGEST_WAIT_NS;
  pass_time(*waited);
}

static void produce(struct thread *to) {
  struct block block = make(16, 512);
  for (uint64_t waited = 0; !put(to, block);) wait_after(&waited);
}

static void consume(struct thread *from) {
  struct block block;
  for (uint64_t waited = 0; !take(from, &block);) wait_after(&waited);
  end(block);
}

static void pipe_pairs(unsigned thread) {
  struct thread *ring = &threads[thread & ~1u];
  for (bool produces = !(thread & 1) && thread + 1 < thread_count;;)
    if (produces)
      produce(ring);
    else if (thread & 1)
      consume(ring);
    else
      pass_time(LONGEST_WAIT_NS); /* an odd one */
}

static void pipe_to_one(unsigned thread) {
  for (;;)
    if (thread)
      produce(&threads[0]);
    else
      consume(&threads[0]);
}

static void ring(unsigned thread) {
  struct thread *next = &threads[(thread + 1) % thread_count];
  for (unsigned i = 0; i < PLACES / 2; i++) put(next, make(16, 512));
  for (;;) produce(next), consume(&threads[thread]);
}

static void all_to_all(unsigned thread) {
  for (struct block block;;) {
    block = make(16, 512);
    if (!put(&threads[random_below(thread_count)], block)) end(block);
    for (unsigned taken = 0; taken < 2 && take(&threads[thread], &block); taken++) end(block);
  }
}

/* ---- arrays of blocks ------------------------------------------------------------------------ */

/* A thread replaces random blocks of its array, leaves that to a new one, and ends. */
static void larson(unsigned thread) {
  enum { LIFE = 50000 };
  for (uint64_t life = 1 + random_below(LIFE);; life = LIFE) {
    while (life--) end(exchange(&threads[thread].blocks[random_below(PLACES)], make(8, 1024)));
    end_thread();
  }
}

/* One in 100 of a request's 60 blocks stays, until another thread's takes its place. */
static void server(unsigned thread) {
  (void)thread;
  enum { REQUEST = 60, STAYS_ONE_IN = 100 };
  for (struct block blocks[REQUEST];;) {
    for (unsigned i = 0; i < REQUEST; i++) blocks[i] = make_of_server();
    for (unsigned i = 0; i < REQUEST; i++)
      if (random_below(STAYS_ONE_IN))
        end(blocks[i]);
      else
        end(exchange(&threads[random_below(thread_count)].blocks[random_below(32)], blocks[i]));
  }
}

/* A pool's threads take turns: one in four runs, and its tasks free what earlier tasks, of any
 * thread, have left. */
static void pool(unsigned thread) {
  enum { TASKS = 16, TASK = 64 };
  pass_time(thread % 4 * 100000);
  for (struct block kept[TASK];;) {
    uint64_t began = clock_now();
    for (unsigned task = 0; task < TASKS; task++) {
      struct block *left =
          &threads[random_below(thread_count)].blocks[random_below(PLACES / TASK) * TASK];
      for (unsigned i = 0; i < TASK; i++) kept[i] = make_of_server();
      for (unsigned i = 0; i < TASK; i++) kept[i] = exchange(&left[i], kept[i]);
      for (unsigned i = 0; i < TASK; i++) end(kept[i]);
    }
    pass_time(3 * (clock_now() - began));
  }
}

/* ---- the counts' own test: one line that all threads write; a line of each one's ------------- */

static _Alignas(LINE_BYTES) char line_of_all[CORES_MAX][LINE_BYTES];

static void write_line(char *line) {
  access_memory(line, 8, true, NULL, __builtin_return_address(0));
  pass_time(WORK_NS);
  count_call();
  count_operation();
}
static void one_line(unsigned thread) {
  (void)thread;
  for (;;) write_line(line_of_all[0]);
}
static void own_lines(unsigned thread) {
  for (;;) write_line(line_of_all[thread]);
}

const struct load loads[] = {
    {"larson", larson, true},
    {"pipe-1:1", pipe_pairs, false},
    {"pipe-n:1", pipe_to_one, false},
    {"ring", ring, false},
    {"pool", pool, true},
    {"server", server, true},
    {"all-to-all", all_to_all, true},
    {"one-line", one_line, true},
    {"own-lines", own_lines, true},
    {NULL, NULL, false},
};

void loads_start(unsigned count) {
  thread_count = count;
  for (unsigned i = 0; i < CORES_MAX; i++)
    threads[i].random = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
}
