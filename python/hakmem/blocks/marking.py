"""Which blocks the program can reach: marking from the roots, over all live blocks.

    roots    words outside of blocks: mark what they point into
    pass     all blocks' pages once, by address: targets of a marked block are marked; other pointers
             between unmarked blocks are kept as edges
    waves    from marked blocks along the edges: many blocks at a time by numpy, few of them one by one, as a
             long list would take a wave for each of its nodes

Law: at the end every live block that is not marked has all its pointers to such blocks among the edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hakmem.blocks.block_map import BlockMap, State
from hakmem.blocks.pointers import pointers_in
from hakmem.blocks.regions import Runs
from hakmem.layout.memory import Addresses, Flags, Integers, Records
from hakmem.layout.structures import rows_in

EXACT_BYTES = 8  # a pointer to the first bytes is exact: programs keep flags in a pointer's low bits
EDGES_AT_ONCE = 1 << 24  # kept before those that are settled are dropped
NARROW, WIDE = 64, 4096  # blocks in a wave: fewer are followed one by one, until there are more
NOBODY = -1
CYCLE_ROUNDS_MAX = 100


@dataclass
class Edges:
    """Pointers between blocks, by source."""

    sources: Integers
    targets: Integers

    def chosen(self, rows: Records) -> Edges:
        return Edges(self.sources[rows], self.targets[rows])


NO_EDGES = Edges(np.empty(0, np.int64), np.empty(0, np.int64))


class Marking:
    """The marks of one scan."""

    def __init__(self, block_map: BlockMap) -> None:
        self.map = block_map
        count = block_map.block_count
        self.is_live = block_map.states == State.LIVE
        # Blocks that are not live need no search.
        self.is_marked = ~self.is_live
        self.is_exact = ~self.is_live  # something points at its beginning
        self.is_from_freed = np.zeros(count, bool)  # a freed block points into it
        self.number = np.int32 if count < 1 << 31 else np.int64
        self._parts: list[Edges] = []
        self._held = 0
        self._held_max = EDGES_AT_ONCE
        self._edges = NO_EDGES

    # ---- what workers do ----

    def mark_roots(self, batch: Runs) -> int:
        """Marks what a batch outside of blocks points into; its bytes."""
        found = pointers_in(batch, self.map)
        self._mark(found.blocks, found.into)
        return batch.bytes

    def mark_words(self, words: Addresses) -> None:
        """Marks the blocks that these words of registers point into."""
        blocks, into = self.map.find(words)
        self._mark(blocks[blocks >= 0], into[blocks >= 0])

    def _mark(self, blocks: Integers, into: Integers) -> None:
        self.is_marked[blocks] = True
        self.is_exact[blocks[into < EXACT_BYTES]] = True

    def edges_of(self, batch: Runs) -> tuple[int, Edges]:
        """Reads a batch of blocks: its bytes, and those of its pointers that are not settled yet."""
        found = pointers_in(batch, self.map)
        is_settled = self.is_marked[found.blocks] & self.is_exact[found.blocks]
        fresh = np.flatnonzero(~is_settled)
        targets, into = found.blocks[fresh], found.into[fresh]
        sources, _ = self.map.find(batch.addresses_of(found.places[fresh]))
        is_other = (sources >= 0) & (sources != targets)
        is_live = is_other & self.is_live[sources]
        self.is_from_freed[targets[is_other & ~is_live]] = True
        self.is_exact[targets[is_live & (into < EXACT_BYTES)]] = True
        self.is_marked[targets[is_live & self.is_marked[sources]]] = True
        rows = np.flatnonzero(is_live & ~self.is_marked[targets])
        return batch.bytes, Edges(sources[rows].astype(self.number), targets[rows].astype(self.number))

    # ---- what comes after ----

    def keep(self, edges: Edges) -> None:
        """Keeps the edges of one more batch."""
        self._parts.append(edges)
        self._held += len(edges.sources)
        if self._held > self._held_max:
            self.settle()
            self._held_max = max(EDGES_AT_ONCE, len(self._edges.sources))

    def settle(self) -> None:
        """Follows the edges as far as they go; keeps those with neither source nor target marked.

        A target that a worker marked on the way has to be followed too: it is the source of edges."""
        columns = [self._edges, *self._parts]
        together = Edges(
            np.concatenate([part.sources for part in columns]),
            np.concatenate([part.targets for part in columns]),
        )
        self._parts, self._held = [], 0
        spread(together, self.is_marked)
        open_ends = ~self.is_marked[together.targets]
        self._edges = together.chosen(open_ends)

    def finish(self) -> Edges:
        """The edges between blocks that cannot be reached."""
        self.settle()
        return self._edges

    def interior(self) -> Integers:
        """The live blocks with a mark at whose beginning nothing points."""
        return np.flatnonzero(self.is_live & self.is_marked & ~self.is_exact)

    def unreachable(self) -> Integers:
        """The live blocks without a mark."""
        return np.flatnonzero(~self.is_marked)


# ---- waves -----------------------------------------------------------------------------------------


class Graph:
    """Edges by source, for quick steps from any block."""

    def __init__(self, edges: Edges, block_count: int) -> None:
        order = (
            np.argsort(edges.sources, kind="stable") if np.any(np.diff(edges.sources) < 0) else slice(None)
        )
        sources = edges.sources[order]
        self.targets = edges.targets[order]
        firsts = np.flatnonzero(np.diff(sources, prepend=NOBODY))
        self.starts, self.ends = firsts, np.append(firsts[1:], len(sources))
        self.nodes = sources[firsts]
        number = np.int32 if len(firsts) < 1 << 31 else np.int64
        self.row_of: Records = np.full(block_count, NOBODY, number)
        self.row_of[self.nodes] = np.arange(len(firsts))

    def steps(self, blocks: Integers) -> tuple[Integers, Integers]:
        """All edges out of these blocks: the place of the source among them, and the target."""
        rows = self.row_of[blocks]
        has_any = np.flatnonzero(rows >= 0)
        rows = rows[has_any]
        starts, counts = self.starts[rows], self.ends[rows] - self.starts[rows]
        total = int(counts.sum())
        before = np.cumsum(counts) - counts
        index = np.repeat(starts - before, counts) + np.arange(total)
        return np.repeat(has_any, counts), self.targets[index]


def spread(edges: Edges, is_marked: Flags) -> None:
    """Marks all that can be reached from marked blocks along the edges."""
    rows = np.flatnonzero(~is_marked[edges.targets])
    begun = rows[is_marked[edges.sources[rows]]]
    if len(begun):
        wave = distinct(edges.targets[begun])
        is_marked[wave] = True
        walk(Graph(edges.chosen(rows), len(is_marked)), wave, is_marked.view(np.uint8))


def walk(graph: Graph, wave: Integers, labels: Records) -> None:
    """From the blocks of a wave to all that can be reached and has no label (0): each gets that of the
    block it was reached from."""
    while len(wave):
        if len(wave) < NARROW:
            wave = _one_by_one(graph, wave, labels)
            continue
        places, targets = graph.steps(wave)
        fresh = np.flatnonzero(labels[targets] == 0)
        targets = targets[fresh]
        labels[targets] = labels[wave[places[fresh]]]
        wave = distinct(targets)


def _one_by_one(graph: Graph, wave: Integers, labels: Records) -> Integers:
    """Follows blocks until none is left, or WIDE are waiting."""
    known, row_of = labels.data, graph.row_of.data
    starts, ends, targets = (column.data for column in (graph.starts, graph.ends, graph.targets))
    stack = wave.tolist()
    while stack and len(stack) < WIDE:
        block = stack.pop()
        row = row_of[block]
        if row < 0:
            continue
        label = known[block]
        for target in targets[starts[row] : ends[row]]:
            if not known[target]:
                known[target] = label
                stack.append(target)
    return np.array(stack, np.int64)


def groups(edges: Edges, members: Integers) -> Integers:
    """For each member, sorted, the place of the one that its group begins with: a member that no other one
    points to, and all that can be reached from it; of a cycle the lowest."""
    sources, is_source = rows_in(members, edges.sources)
    targets, is_target = rows_in(members, edges.targets)
    inside = Edges(sources, targets).chosen(is_source & is_target)
    graph, labels = Graph(inside, len(members)), np.zeros(len(members), np.int64)
    blocked = np.zeros(len(members), bool)
    blocked[inside.targets] = True
    for _ in range(CYCLE_ROUNDS_MAX):
        heads = np.flatnonzero(~blocked & (labels == 0))
        labels[heads] = heads + 1
        walk(graph, heads, labels)
        if labels.all():
            break
        # The rest is in cycles, or reached from them only.
        left = inside.chosen((labels[inside.sources] == 0) & (labels[inside.targets] == 0))
        blocked[:] = False
        blocked[left.targets[left.sources < left.targets]] = True
    return np.where(labels == 0, np.arange(len(members)), labels - 1)


def distinct(values: Integers) -> Integers:
    """Each value once, sorted."""
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=NOBODY) != 0] if len(ordered) else ordered
