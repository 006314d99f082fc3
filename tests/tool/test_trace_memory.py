"""hakmem trace takes memory for the blocks that live, not for the events of a trace: whatever its length."""

import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hakmem.trace import file, resolving
from hakmem.trace.figures import figures_of
from hakmem.trace.file import Trace, read, write
from hakmem.trace.plan import plan_of
from hakmem.trace.resolving import Piece, Resolver
from hakmem.trace.words import Word
from tool.test_trace import clock, word

PAIR_NS, PAIRS_A_PIECE = 1000, 500
FEW, TIMES = 5000, 6  # blocks


def recorded(pairs: int) -> Trace:
    """One thread takes and frees a block at a time."""
    numbers = np.arange(pairs, dtype=np.uint32)
    words = np.empty((pairs, 3), np.uint32)
    words[:, 0] = numbers * PAIR_NS << 3 | Word.TIME
    words[:, 1] = (numbers % 100 + 1) << 3 | Word.TAKE
    words[:, 2] = (numbers % 100 + 1) << 3 | Word.FREE
    first = np.array([*clock(0, 0), word(Word.REGION, 0), word(Word.SIZE, 8)], np.uint32)
    pieces = [Piece(0, 0, first)]
    pieces += [
        Piece((start + PAIRS_A_PIECE) * PAIR_NS, 0, words[start : start + PAIRS_A_PIECE].ravel())
        for start in range(0, pairs, PAIRS_A_PIECE)
    ]
    return Trace({"pid": 3}, Resolver(lambda: iter(pieces)).lives, 0, {"end": "done"}, None)


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long("2 seconds of processor time")
def test_memory_does_not_grow_with_the_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "WORDS_AT_ONCE", 3000)
    monkeypatch.setattr(resolving, "SLACK_NS", 0)
    monkeypatch.setattr(file, "EVENTS_AT_ONCE", 2000)
    path, peaks = tmp_path / "x.hkt", dict[int, list[int]]()
    write(path, recorded(FEW))
    figures_of(read(path))  # imports
    for pairs in FEW, TIMES * FEW:
        works = [
            partial(write, path, recorded(pairs)),
            lambda: figures_of(read(path)),
            lambda: plan_of(read(path), tmp_path / "plan"),
        ]
        peaks[pairs] = [peak_of(work) for work in works]
        assert figures_of(read(path)).allocated_blocks == pairs
    for few, many in zip(*peaks.values(), strict=True):
        assert many < 2 * few, peaks
