#include "pool/slot_index.h"

#include "map/metadata.h"

/* Nodes of a tree: 8 roots, then level by level their children, 8 of each.  The last level's nodes
 * are SuperSlabs; the others have a word, a byte of it for each child. */
enum {
  FANOUT = 8,
  ROOTS = 8,
  LEAVES = ROOTS + ROOTS * FANOUT + ROOTS * FANOUT * FANOUT, /* the first one */
  TREE_CHUNKS = ROOTS * FANOUT * FANOUT * FANOUT,
  TREES = 1 << 15 /* 256 TiB, more than a process's address space */
};

struct tree {
  ATOMIC(uint64_t) words[LEAVES];
};
struct trees {
  ATOMIC(struct tree *) tree[TREES]; /* the first one unused; NULL where no SuperSlab ever was */
};
_Static_assert(sizeof(struct trees) <= RECORD_CHUNK_BYTES, "metadata_allocate gives no more");

RARE_DATA static struct tree first_tree;
static ATOMIC(struct trees *)
    more_trees; /* NULL while all SuperSlabs are in the window's first 8 GiB */

RESIDENT static struct tree *tree_if_any(size_t number) {
  if (LIKELY(!number)) return &first_tree;
  struct trees *more = load_acquire(&more_trees); /* this and the next pair with make_tree */
  return more ? load_acquire(&more->tree[number]) : NULL;
}

/* The loser of a race leaves addresses unused: no thread waits for another. */
static NOINLINE bool make_tree(size_t number) {
  struct trees *no_trees = NULL, *trees = load_acquire(&more_trees);
  if (!trees && !(trees = metadata_allocate(sizeof *trees))) return false;
  /* release: zeroed before; here and below. */
  if (!cas_strong_acq_rel(&more_trees, &no_trees, trees)) trees = no_trees;
  struct tree *no_tree = NULL, *tree = metadata_allocate(sizeof *tree);
  if (tree) cas_strong_acq_rel(&trees->tree[number], &no_tree, tree);
  return tree != NULL;
}

RESIDENT bool slot_index_covers(size_t chunk) {
  return tree_if_any(chunk / TREE_CHUNKS) || make_tree(chunk / TREE_CHUNKS);
}

/* The chunks under one root. */
enum { ROOT_CHUNKS = TREE_CHUNKS / ROOTS };
static size_t roots_in_use(void) { return load_relaxed(&window.frontier_chunk) / ROOT_CHUNKS + 1; }

/* ---- one tree -------------------------------------------------------------------------------- */

static size_t parent_of(size_t node) { return node / FANOUT - 1; }
static size_t first_child_of(size_t node) { return (node + 1) * FANOUT; }
static unsigned shift_of(size_t node) { return (unsigned)(node % FANOUT * 8); }

static uint64_t in_all_bytes(unsigned kinds) { return kinds * UINT64_C(0x0101010101010101); }
static unsigned in_any_byte(uint64_t word) {
  word |= word >> 32;
  word |= word >> 16;
  return (word | word >> 8) & 0xff;
}

/* All operations on the words, and on `slots`, are seq: a thread that gives a node kinds then looks
 * above, a thread that takes kinds from a word above then looks below, and one of the two sees the
 * other. */

/* Enters these kinds in the words above this node. */
RESIDENT static void raise(struct tree *tree, size_t node, unsigned kinds) {
  for (; node >= ROOTS; node = parent_of(node)) {
    ATOMIC(uint64_t) *word = &tree->words[parent_of(node)];
    uint64_t bits = (uint64_t)kinds << shift_of(node);
    if ((load_seq(word) & bits) == bits) return; /* pairs with `lower` */
    fetch_or_seq(word, bits);                    /* pairs with the look after `lower` */
  }
}

RESIDENT static void lower(struct tree *tree, size_t node, unsigned kinds) {
  /* seq: before the look below; pairs with `raise`. */
  fetch_and_seq(&tree->words[parent_of(node)], ~((uint64_t)kinds << shift_of(node)));
}

/* A search came here and found nothing. */
static void lower_if_gone(struct tree *tree, size_t node, unsigned kind) {
  lower(tree, node, kind);
  /* seq: after `lower`; pairs with the OR in `raise`. */
  if (in_any_byte(load_seq(&tree->words[node])) & kind) raise(tree, node, kind);
}

RESIDENT static size_t find_below(struct tree *tree, size_t top, unsigned kind) {
  for (size_t node = top; node < LEAVES;) {
    /* acquire (seq): everything done to a SuperSlab before it was noted; pairs with `raise`. */
    uint64_t found = load_seq(&tree->words[node]) & in_all_bytes(kind);
    if (found) {
      node = first_child_of(node) + lowest_bit(found) / 8;
      if (node >= LEAVES) return node - LEAVES;
    } else if (node == top) {
      break;
    } else {
      lower_if_gone(tree, node, kind);
      node = parent_of(node);
    }
  }
  return NO_CHUNK;
}

/* Few SuperSlabs need only their own word, or the one above it. */
RESIDENT size_t slot_index_find(unsigned kind) {
  size_t frontier = load_relaxed(&window.frontier_chunk), word = parent_of(LEAVES);
  if (frontier <= FANOUT) return find_below(&first_tree, word, kind);
  if (frontier <= FANOUT * FANOUT) return find_below(&first_tree, parent_of(word), kind);
  for (size_t root = 0, end = roots_in_use(); root < end; root++) {
    struct tree *tree = tree_if_any(root / ROOTS);
    size_t chunk = tree ? find_below(tree, root % ROOTS, kind) : NO_CHUNK;
    if (chunk != NO_CHUNK) return root / ROOTS * TREE_CHUNKS + chunk;
  }
  return NO_CHUNK;
}

size_t slot_index_find_below(size_t chunk, unsigned kinds) {
  while (chunk--) {
    struct tree *tree = tree_if_any(chunk / TREE_CHUNKS);
    size_t node = LEAVES + chunk % TREE_CHUNKS;
    /* acquire (seq): as in a search. */
    uint64_t found = tree ? load_seq(&tree->words[parent_of(node)]) : 0;
    found &= in_all_bytes(kinds) & low_bits(shift_of(node) + 8);
    chunk = round_down(chunk, tree ? FANOUT : TREE_CHUNKS);
    if (found) return chunk + highest_bit(found) / 8;
  }
  return NO_CHUNK;
}

/* ---- what SuperSlabs have -------------------------------------------------------------------- */

RESIDENT uint32_t usable_slots(void) { return window.hardened_bit ? LOWER_SLOTS : ALL_SLOTS; }

RESIDENT static unsigned run_kinds(uint32_t bits) {
  unsigned kinds = 0;
  for (unsigned slot_count = 1; slot_count <= 4; slot_count *= 2)
    if (run_starts(bits, slot_count)) kinds |= slot_count;
  return kinds;
}
_Static_assert(KIND_DIRTY_RUN == 1 && KIND_ANY_RUN == 1 << 3, "a run's length is its bit");

RESIDENT unsigned slot_kinds(uint64_t slots) {
  uint32_t unused = slots_unused(slots), dirty = slots_dirty(slots);
  if (!unused) return 0;
  if (unused == usable_slots()) return unused & dirty ? KIND_KEPT : KIND_CLEAN;
  return run_kinds(unused & dirty) * KIND_DIRTY_RUN | run_kinds(unused) * KIND_ANY_RUN;
}

RESIDENT void slot_index_note(size_t chunk, const ATOMIC(uint64_t) *slots, uint64_t now) {
  struct tree *tree = tree_if_any(chunk / TREE_CHUNKS);
  size_t node = LEAVES + chunk % TREE_CHUNKS;
  unsigned kinds = slot_kinds(now);
  /* seq: after the slots; pairs with `lower`. */
  unsigned noted = load_seq(&tree->words[parent_of(node)]) >> shift_of(node) & 0xff;
  if (kinds & ~noted) raise(tree, node, kinds);
  unsigned gone = noted & ~kinds;
  if (!gone) return;
  lower(tree, node, gone);
  /* seq: after `lower`; pairs with slots_return and slots_hold, which change the slots before they
   * note them. */
  unsigned again = slot_kinds(load_seq(slots)) & gone;
  if (again) raise(tree, node, again);
}

size_t slot_index_repair(void) {
  size_t kept = 0;
  for (size_t root = 0, end = roots_in_use(); root < end; root += ROOTS) {
    struct tree *tree = tree_if_any(root / ROOTS);
    for (size_t node = LEAVES; tree && node-- > 0;) {
      uint64_t word = load_relaxed(&tree->words[node]);
      if (first_child_of(node) >= LEAVES) kept += count_bits(word & in_all_bytes(KIND_KEPT));
      if (word) raise(tree, node, in_any_byte(word));
    }
  }
  return kept;
}
