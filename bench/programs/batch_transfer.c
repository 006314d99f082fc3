/* SPDX-License-Identifier: MIT
 *
 * batch_transfer: work handed over in whole batches.  A thread allocates a batch of blocks, puts it
 * into a random mailbox, takes out the batch that lay there, which mostly another thread allocated,
 * and frees it all at once.  No thread waits: every mailbox always holds a batch.
 * One operation is one malloc and one free.
 *
 *   --batch BLOCKS (256)  --min BYTES (16)  --max BYTES (512)  --mailboxes N (8)
 *   --threads N (4)  --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <stdatomic.h>

static uint64_t batch_blocks = 256, min_size = 16, max_size = 512, mailbox_count = 8, threads = 4;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("batch", batch_blocks, 1, 1 << 20, "blocks that travel together"),
    ARG_COUNT("min", min_size, 1, ARGS_SIZE_MAX, "bytes of the smallest block"),
    ARG_COUNT("max", max_size, 1, ARGS_SIZE_MAX, "bytes of the largest block"),
    ARG_COUNT("mailboxes", mailbox_count, 1, 1 << 16, "batches that lie in wait"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each of which does both"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"batch_transfer",
                                   "Threads exchange batches of blocks and free them at once.",
                                   args, sizeof args / sizeof args[0]};

typedef unsigned char **block_array; /* own pages with `batch_blocks` pointers */

struct mailbox {
  alignas(128) _Atomic(block_array) content;
};

static struct mailbox *mailboxes;

static block_array batch_new(void) { return own_pages(batch_blocks * sizeof(unsigned char *)); }

static void batch_fill(block_array batch, struct worker *worker) {
  for (uint64_t i = 0; i < batch_blocks; i++) {
    size_t size = rng_between(&worker->rng, min_size, max_size);
    batch[i] = block_new(size);
    touch_ends(batch[i], size);
  }
  worker->tally.mallocs += batch_blocks;
}

static void batch_empty(block_array batch, struct worker *worker) {
  for (uint64_t i = 0; i < batch_blocks; i++) {
    if (batch[i][0] != 1) {
      give_up("a block lost its content");
    }
    free(batch[i]);
  }
  worker->tally.frees += batch_blocks;
}

/* The threads fill the mailboxes before the clock starts, each its share, and empty them at the
 * end. */
static void work(struct worker *worker) {
  block_array batch = batch_new();
  for (uint64_t i = worker->index; i < mailbox_count; i += threads) {
    mailboxes[i].content = batch_new();
    batch_fill(mailboxes[i].content, worker);
  }
  team_begin(worker);
  do {
    struct mailbox *mailbox = &mailboxes[rng_below(&worker->rng, mailbox_count)];
    batch_fill(batch, worker);
    batch = atomic_exchange_explicit(&mailbox->content, batch, memory_order_acq_rel);
    batch_empty(batch, worker);
    worker->tally.ops += batch_blocks;
  } while (!measure_expired());
  team_end(worker);
  for (uint64_t i = worker->index; i < mailbox_count; i += threads) {
    batch_empty(mailboxes[i].content, worker);
  }
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  mailboxes = own_pages(mailbox_count * sizeof *mailboxes);
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "threads=%llu batch=%llu min=%llu max=%llu mailboxes=%llu",
                 (unsigned long long)threads, (unsigned long long)batch_blocks,
                 (unsigned long long)min_size, (unsigned long long)max_size,
                 (unsigned long long)mailbox_count);
  return 0;
}
