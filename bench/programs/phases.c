/* SPDX-License-Identifier: MIT
 *
 * phases: a program whose needs change.  In each phase it fills up with blocks of one size until
 * --live bytes are live, then frees nine in ten of all its blocks at random, and the next phase has
 * another size.  Measures whether memory that held one size can hold the next, with survivors all
 * over it.  A fixed amount of work, so that peaks of memory compare.
 * One operation is one malloc and, nine times in ten, one free.
 *
 *   --live BYTES (64M, at the peak of a phase)  --phases N (6; 32, 512, 64, 2048, 96, 8192 bytes)
 *
 * live_bytes: bytes asked for and not freed at the end.  rss_over_live: the resident memory at the
 * end, less that before the first block, over these.
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <string.h>

enum { KEPT_IN = 10, SMALLEST_SIZE = 32 };
static const uint32_t phase_sizes[] = {SMALLEST_SIZE, 512, 64, 2048, 96, 8192};
enum { PHASE_SIZES = sizeof phase_sizes / sizeof phase_sizes[0] };

static uint64_t live_limit = 64 << 20, phases = 6;

static const struct arg args[] = {
    ARG_COUNT("live", live_limit, 1 << 16, UINT64_C(1) << 36, "live bytes at the peak of a phase"),
    ARG_COUNT("phases", phases, 1, 1 << 16, "phases; after the sixth size comes the first again"),
};

static const struct usage usage = {"phases",
                                   "Grows with one size, frees most, grows with another size.",
                                   args, sizeof args / sizeof args[0]};

/* A block begins with its size. */
struct heap {
  unsigned char **blocks;
  uint64_t count, live_bytes;
  struct rng rng;
};

static long first_rss_kib;
static uint64_t live_bytes;

static void fill(struct heap *heap, uint32_t size, struct tally *tally) {
  uint64_t before = heap->count;
  while (heap->live_bytes + size <= live_limit) {
    unsigned char *block = block_new(size);
    touch_pages(block, size);
    memcpy(block, &size, sizeof size);
    heap->blocks[heap->count++] = block;
    heap->live_bytes += size;
  }
  tally->mallocs += heap->count - before;
}

static void free_random(struct heap *heap, uint64_t keep, struct tally *tally) {
  tally->frees += heap->count - keep;
  while (heap->count > keep) {
    unsigned char **victim = &heap->blocks[rng_below(&heap->rng, heap->count)];
    uint32_t size;
    memcpy(&size, *victim, sizeof size);
    heap->live_bytes -= size;
    free(*victim);
    *victim = heap->blocks[--heap->count];
  }
}

static void work(struct worker *worker) {
  uint64_t most_blocks = live_limit / SMALLEST_SIZE;
  struct heap heap = {.blocks = own_pages(most_blocks * sizeof *heap.blocks), .rng = worker->rng};
  struct tally tally = {0};

  touch_pages((unsigned char *)heap.blocks, most_blocks * sizeof *heap.blocks);
  first_rss_kib = measure_status_kib("VmRSS");
  team_begin(worker);
  for (uint64_t phase = 0; phase < phases; phase++) {
    fill(&heap, phase_sizes[phase % PHASE_SIZES], &tally);
    free_random(&heap, heap.count / KEPT_IN, &tally);
  }
  tally.ops = tally.mallocs;
  team_end(worker);
  live_bytes = heap.live_bytes;
  free_random(&heap, 0, &tally);
  if (heap.live_bytes != 0) {
    give_up("a block lost its content");
  }
  worker->tally = tally;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  struct tally tally = team_run(1, 1.0, work);
  double grown = 1024.0 * (double)(measure_stop_rss_kib() - first_rss_kib);
  measure_report(usage.program, &tally, "live=%llu phases=%llu live_bytes=%llu rss_over_live=%.3f",
                 (unsigned long long)live_limit, (unsigned long long)phases,
                 (unsigned long long)live_bytes, grown / (double)live_bytes);
  return 0;
}
