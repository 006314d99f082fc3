/* SPDX-License-Identifier: MIT
 *
 * tree: syntax trees, as in compilers.  Builds a binary tree, walks it, and tears it down node by
 * node, children before parents, beside a tree of full depth that stays.  Nodes have several sizes;
 * trees are one node deep at the least and --depth at the most, each depth as often as the next.
 * One operation is one node: one malloc and one free.
 *
 *   --depth N (16, levels below the root)  --min BYTES (24)  --max BYTES (72)  --threads N (1)
 *   --seconds S (1)
 */
#include "args.h"
#include "blocks.h"
#include "team.h"

static uint64_t depth = 16, min_size = 24, max_size = 72, threads = 1;
static double seconds = 1.0;

static const struct arg args[] = {
    ARG_COUNT("depth", depth, 1, 24, "levels below the root of the deepest tree"),
    ARG_COUNT("min", min_size, 24, ARGS_SIZE_MAX, "bytes of the smallest node"),
    ARG_COUNT("max", max_size, 24, ARGS_SIZE_MAX, "bytes of the largest node"),
    ARG_COUNT("threads", threads, 1, ARGS_THREADS_MAX, "threads, each with its own trees"),
    ARG_SECONDS(seconds),
};

static const struct usage usage = {"tree", "Builds and tears down binary trees.", args,
                                   sizeof args / sizeof args[0]};

struct node {
  struct node *left, *right; /* both or none */
  uint64_t height;           /* levels below this one */
};

static uint64_t nodes_of(uint64_t height) { return (UINT64_C(2) << height) - 1; }

static struct node *build(uint64_t height, struct rng *rng) {
  struct node *node = (struct node *)block_new(rng_between(rng, min_size, max_size));
  *node = (struct node){.height = height};
  if (height > 0) {
    node->left = build(height - 1, rng);
    node->right = build(height - 1, rng);
  }
  return node;
}

static uint64_t count(const struct node *node) {
  return node->height == 0 ? 1 : 1 + count(node->left) + count(node->right);
}

static void tear_down(struct node *node) {
  if (node->height > 0) {
    tear_down(node->left);
    tear_down(node->right);
  }
  free(node);
}

static void one_tree(struct rng *rng, struct tally *tally) {
  uint64_t height = rng_between(rng, 1, depth);
  struct node *root = build(height, rng);
  if (count(root) != nodes_of(height)) {
    give_up("a node lost its content");
  }
  tear_down(root);
  tally->ops += nodes_of(height);
}

static void work(struct worker *worker) {
  struct rng rng = worker->rng;
  struct tally tally = {0};
  struct node *stays = build(depth, &rng);

  tear_down(build(depth, &rng)); /* the peak of memory is the same in every run */
  team_begin(worker);
  do {
    one_tree(&rng, &tally);
  } while (!measure_expired());
  team_end(worker);
  tear_down(stays);
  tally.mallocs = tally.frees = tally.ops + 2 * nodes_of(depth);
  worker->tally = tally;
}

int main(int argc, char **argv) {
  args_parse(&usage, argc, argv);
  args_check_sizes(&usage, min_size, max_size);
  struct tally tally = team_run(threads, seconds, work);
  measure_report(usage.program, &tally, "threads=%llu depth=%llu min=%llu max=%llu",
                 (unsigned long long)threads, (unsigned long long)depth,
                 (unsigned long long)min_size, (unsigned long long)max_size);
  return 0;
}
