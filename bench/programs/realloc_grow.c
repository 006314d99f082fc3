/* SPDX-License-Identifier: MIT
 *
 * realloc_grow: things that grow while others grow beside them.  A random one of a set of containers
 * grows by one step through realloc, and its new bytes are written; at its limit it is freed and
 * starts again.  A vector grows by half of its size, a string by 1 to 64 bytes; a buffer goes up and
 * down between two sizes and is not written to.
 * One operation is one step, a realloc (and now and then a free).
 *
 *   --pattern vector|string|buffer|mixed (mixed: vectors and strings)  --containers N (256)
 *   --low BYTES (20K, buffers)  --limit BYTES (1M, vectors and buffers)  --string-limit BYTES (4K)  --ops N (400000)  --threads N (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

#include <stdbool.h>
#include <string.h>

enum { PATTERN_VECTOR, PATTERN_STRING, PATTERN_BUFFER, PATTERN_MIXED };
static const char *const pattern_names[] = {"vector", "string", "buffer", "mixed", NULL};

struct container {
  unsigned char *bytes;
  size_t size;
};

static size_t pattern = PATTERN_MIXED;
static uint64_t container_count = 256, vector_limit = 1 << 20, string_limit = 4 << 10;
static uint64_t low_size = 20 << 10, ops = 400000, threads = 1;

static const struct arg args[] = {
    ARG_CHOICE("pattern", pattern, pattern_names, "containers that grow"),
    ARG_COUNT("containers", container_count, 1, 1 << 24, "containers of each thread"),
    ARG_COUNT("low", low_size, 16, ARGS_SIZE_MAX, "bytes of a small buffer"),
    ARG_COUNT("limit", vector_limit, 16, ARGS_SIZE_MAX,
              "bytes of a large buffer, or at which a vector starts again"),
    ARG_COUNT("string-limit", string_limit, 16, ARGS_SIZE_MAX,
              "bytes at which a string starts again"),
    ARG_COUNT("ops", ops, 1, UINT64_MAX / 2, "steps of each thread"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own containers"),
};

static const struct usage usage = {"realloc_grow", "Grows vectors and strings by realloc.", args,
                                   sizeof args / sizeof args[0]};

static bool is_string(uint64_t index) {
  return pattern == PATTERN_STRING || (pattern == PATTERN_MIXED && index % 2 == 1);
}

/* The first byte is checked: a realloc that loses content must not win. */
static void resize(struct container *container, size_t size) {
  unsigned char *bytes = realloc(container->bytes, size);
  if (bytes == NULL) {
    out_of_memory(size);
  }
  if (container->size != 0 && bytes[0] != 1) {
    give_up("realloc lost the content");
  }
  if (pattern == PATTERN_BUFFER) {
    bytes[0] = 1;
  } else {
    memset(bytes + container->size, 1, size - container->size);
  }
  *container = (struct container){.bytes = bytes, .size = size};
}

static void start_again(struct container *container, struct tally *tally) {
  free(container->bytes);
  tally->frees += container->bytes != NULL;
  *container = (struct container){0};
}

static void grow(struct container *container, bool string, struct rng *rng, struct tally *tally) {
  size_t step = string ? rng_between(rng, 1, 64) : container->size / 2 + 16;
  if (container->size + step > (string ? string_limit : vector_limit)) {
    start_again(container, tally);
    step = 16;
  }
  resize(container, container->size + step);
  tally->mallocs++;
}

static void swing(struct container *buffer, struct tally *tally) {
  resize(buffer, buffer->size == low_size ? vector_limit : low_size);
  tally->mallocs++;
}

static void work(struct worker *worker) {
  struct container *containers = own_pages(container_count * sizeof *containers);
  struct rng rng = worker->rng;
  struct tally tally = {.ops = ops};

  team_begin(worker);
  for (uint64_t i = 0; i < ops; i++) {
    uint64_t index = rng_below(&rng, container_count);
    if (pattern == PATTERN_BUFFER) {
      swing(&containers[index], &tally);
    } else {
      grow(&containers[index], is_string(index), &rng, &tally);
    }
  }
  team_end(worker);
  for (uint64_t i = 0; i < container_count; i++) {
    start_again(&containers[i], &tally);
  }
  worker->tally = tally;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  struct tally tally = team_run(threads, 1.0, work);
  measure_report(usage.program, &tally, "pattern=%s threads=%llu containers=%llu",
                 pattern_names[pattern], (unsigned long long)threads,
                 (unsigned long long)container_count);
  return 0;
}
