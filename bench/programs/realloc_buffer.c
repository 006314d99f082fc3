/* SPDX-License-Identifier: MIT
 *
 * realloc_buffer: one buffer that becomes huge, as when a file of unknown length is read.  It grows by
 * half of its size through realloc, again and again, and one byte a page of the new part is written.
 * Measures whether the content is copied or its pages are moved, and what the peak of memory is.  A
 * fixed amount of work.
 * One operation is one realloc with the writes.
 *
 *   --start BYTES (64K)  --max BYTES (1G)  --rounds N (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

static uint64_t start_size = 64 << 10, max_size = 1 << 30, rounds = 1;

static const struct arg args[] = {
    ARG_COUNT("start", start_size, 2, ARGS_SIZE_MAX, "bytes of the first buffer"),
    ARG_COUNT("max", max_size, 2, ARGS_SIZE_MAX, "bytes of the last"),
    ARG_COUNT("rounds", rounds, 1, 1 << 20, "times that a buffer grows"),
};

static const struct usage usage = {"realloc_buffer", "Grows one buffer to a huge one by realloc.",
                                   args, sizeof args / sizeof args[0]};

static uint64_t next_size(uint64_t size) {
  uint64_t next = size + size / 2;
  return next < max_size ? next : max_size;
}

static unsigned char *grow(unsigned char *buffer, uint64_t from, uint64_t to) {
  unsigned char *grown = realloc(buffer, to);
  if (grown == NULL) {
    out_of_memory(to);
  }
  if (grown[0] != 1 || grown[from - 1] != 1) {
    give_up("realloc lost the content");
  }
  touch_pages(grown + from, to - from);
  grown[to - 1] = 1;
  return grown;
}

static void one_round(struct tally *tally) {
  unsigned char *buffer = block_new(start_size);
  touch_pages(buffer, start_size);
  touch_ends(buffer, start_size);
  for (uint64_t size = start_size; size < max_size; size = next_size(size)) {
    buffer = grow(buffer, size, next_size(size));
    tally->ops++;
  }
  free(buffer);
  tally->mallocs++;
  tally->frees++;
}

static void work(struct worker *worker) {
  team_begin(worker);
  for (uint64_t i = 0; i < rounds; i++) {
    one_round(&worker->tally);
  }
  team_end(worker);
  worker->tally.mallocs += worker->tally.ops;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  if (start_size >= max_size) {
    args_refuse(&usage, "--start must be below --max");
  }
  struct tally tally = team_run(1, 1.0, work);
  measure_report(usage.program, &tally, "start=%llu max=%llu rounds=%llu",
                 (unsigned long long)start_size, (unsigned long long)max_size,
                 (unsigned long long)rounds);
  return 0;
}
