"""The suspected blocks at one moment, for which the process is stopped.

A scan of the running process suspects blocks (scanning.py).  While the process is stopped, all its memory is
searched for words that point to suspects, by `hakmem-walk --pointers`, and its block map is read.  What the
program can reach then, it reaches from a root or from a live block that is not suspected: every other way
leads through suspects alone, whose pointers are known too.  So a wrong suspicion does no harm."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import PIPE
from typing import IO

import numpy as np

from hakmem.blocks.block_map import NONE, BlockMap, State, read_block_map
from hakmem.blocks.freeze import frozen
from hakmem.blocks.marking import Edges, Marking, spread
from hakmem.blocks.regions import WORD_BYTES, Regions
from hakmem.blocks.scanning import Scan, root_words
from hakmem.layout.memory import Addresses, Integers, Records
from hakmem.target.glibc import WALKER, walk_error
from hakmem.target.library import find_program
from hakmem.target.pages import Interval, is_within
from hakmem.target.target import Target

WORKERS_MAX = 4


def look_stopped(target: Target, suspecting: Scan, with_swapped: bool) -> Scan:
    """Drops the suspects that can be reached while the process is stopped."""
    assert target.process is not None
    suspects = suspecting.unreachable
    began_processor_s = sum(os.times()[:4])
    starts, sizes = suspecting.map.starts_of(suspects), suspecting.map.sizes_of(suspects)
    with Finders.started(target, listed(starts, sizes.astype(np.uint64))) as finders:
        with frozen(target.process) as threads:
            began_s = time.monotonic()
            regions = Regions(target, threads)
            runs = list(regions.runs(regions.roots, with_swapped))
            read = [
                np.concatenate(column)
                for column in zip(*((run.starts, run.counts) for run in runs), strict=True)
            ]
            finders.send(listed(*read))
            block_map = read_block_map(target)
            words = root_words(target, threads)
            counts = finders.counts()
            seconds = time.monotonic() - began_s
        pointers = finders.pointers(counts)
    blocks, into = block_map.find(starts)
    rows = np.flatnonzero((blocks != NONE) & (into == 0))
    same = block_map.sizes_of(blocks[rows]) == sizes[rows]
    rows = rows[same & (block_map.states[blocks[rows]] == State.LIVE)]
    marking, edges = marked(block_map, block_map.own(regions.mappings), blocks[rows], pointers, words)
    is_lost = ~marking.is_marked[blocks[rows]]
    first = suspecting.marking
    inexact, _ = block_map.find(suspecting.map.starts_of(first.interior()))
    marking.is_exact[inexact[inexact != NONE]] = False
    return Scan(
        map=block_map,
        marking=marking,
        edges=edges,
        unreachable=blocks[rows][is_lost],
        hashes=suspecting.hashes[rows][is_lost],
        threads=threads,
        swapped_bytes=regions.swapped_bytes,
        missing_bytes=0,
        read_bytes=sum(run.bytes for run in runs),
        seconds=seconds,
        processor_seconds=sum(os.times()[:4]) - began_processor_s,
    )


def marked(
    block_map: BlockMap, own: Sequence[Interval], suspects: Integers, pointers: Records, words: Addresses
) -> tuple[Marking, Edges]:
    """All but the suspects that nothing reaches; and the pointers between suspects."""
    marking = Marking(block_map)
    marking.is_marked[:] = marking.is_exact[:] = True
    marking.is_marked[suspects] = False
    targets, _ = block_map.find(pointers[:, 1])
    rows = np.flatnonzero((targets != NONE) & ~marking.is_marked[targets])
    places, targets = pointers[rows, 0], targets[rows]
    sources, _ = block_map.find(places)
    is_block = sources != NONE
    is_live = is_block & marking.is_live[sources]
    is_inner = is_live & ~marking.is_marked[sources]
    marking.is_from_freed[targets[is_block & ~is_live]] = True
    edges = Edges(sources[is_inner], targets[is_inner])
    marking.is_marked[targets[(is_live & ~is_inner) | ~is_within(own, places)]] = True
    marking.mark_words(words)
    spread(edges, marking.is_marked)
    return marking, edges


def listed(starts: Addresses, counts: Addresses) -> bytes:
    order = np.argsort(starts, kind="stable")
    table = np.column_stack([starts[order], starts[order] + counts[order]])
    return np.uint64(len(table)).tobytes() + table.astype(np.uint64).tobytes()


@dataclass
class Finders:
    """Processes of the walker, each for a part of the memory."""

    target: Target
    processes: list[subprocess.Popen[bytes]]

    @classmethod
    @contextmanager
    def started(cls, target: Target, blocks: bytes) -> Iterator[Finders]:
        assert target.process is not None
        count = min(WORKERS_MAX, len(os.sched_getaffinity(0)))
        words = [str(find_program(WALKER)), str(target.process.memory_id), "--pointers"]
        finders = cls(target, [])
        try:
            for number in range(count):
                worker = [*words, str(number), str(count)]
                finders.processes.append(subprocess.Popen(worker, stdin=PIPE, stdout=PIPE, stderr=PIPE))
            finders.send(blocks)
            yield finders
        finally:
            for process in finders.processes:
                process.kill()
                process.communicate()

    def counts(self) -> list[int]:
        """The number of pointers that each one has found: then it has read its part."""
        return [int.from_bytes(self._read(one, WORD_BYTES), "little") for one in self.processes]

    def pointers(self, counts: Sequence[int]) -> Records:
        """Pairs: the place and the value."""
        parts = [
            self._read(one, 2 * WORD_BYTES * count) for one, count in zip(self.processes, counts, strict=True)
        ]
        return np.frombuffer(b"".join(parts), np.uint64).reshape(-1, 2)

    def send(self, data: bytes) -> None:
        for process in self.processes:
            try:
                _stream(process.stdin).write(data)
                _stream(process.stdin).flush()
            except BrokenPipeError:
                self._fail(process)

    def _read(self, process: subprocess.Popen[bytes], count: int) -> bytes:
        data = _stream(process.stdout).read(count)
        if len(data) < count:
            self._fail(process)
        return data

    def _fail(self, process: subprocess.Popen[bytes]) -> None:
        said = _stream(process.stderr).read().decode()
        raise walk_error(self.target.pid, process.wait(), said)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
