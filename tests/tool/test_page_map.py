"""Which pages are resident: read where there are any, in reservations of any size."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hakmem.census.why import explain
from hakmem.target import pages
from hakmem.target.pages import PAGE_BYTES, REGION_BYTES, PageMap, pieces, read_page_map
from hakmem.target.process import Process
from hakmem.target.target import open_process
from tool.processes import running
from tool.test_huge import PROGRAM, pytestmark

__all__ = ["pytestmark"]

GIB, MIB = 1 << 30, 1 << 20
MAP_NORESERVE = 0x4000  # Python has no name for it
RESERVED_BYTES = 64 * GIB


@pytest.fixture(params=["asked", "looked at"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kernels before 6.7 cannot be asked."""
    if request.param == "looked at":

        def refused(*_: object, **__: object) -> Iterator[object]:
            raise OSError
            yield

        monkeypatch.setattr(pages, "scanned_runs", refused)
    return str(request.param)


@pytest.fixture
def reserved(how: str) -> Iterator[tuple[mmap.mmap, int]]:
    """A reservation of this process, and where it is."""
    size = RESERVED_BYTES if how == "asked" else GIB
    with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE) as area:
        area.madvise(mmap.MADV_NOHUGEPAGE)
        yield area, np.frombuffer(area, np.uint8, 1).__array_interface__["data"][0]


def test_only_regions_with_pages_are_kept(reserved: tuple[mmap.mmap, int]) -> None:
    area, start = reserved
    size, random_ = len(area), random.Random(5)
    touched = sorted({0, size // PAGE_BYTES - 1, *(random_.randrange(size // PAGE_BYTES) for _ in range(20))})
    for page in touched:
        area[page * PAGE_BYTES] = 1
    found = read_page_map(Process(os.getpid()), start, start + size, [(start, start + size)])
    assert len(found.regions) <= len(touched)
    assert found.resident_bytes == len(touched) * PAGE_BYTES
    edges = np.array(sorted({0, size, *(random_.randrange(size) for _ in range(200))}), np.uint64)
    between = found.resident_between(edges[:-1] + np.uint64(start), edges[1:] + np.uint64(start))
    for low, high, resident in zip(edges[:-1].tolist(), edges[1:].tolist(), between.tolist(), strict=True):
        overlaps = (min(high, (page + 1) * PAGE_BYTES) - max(low, page * PAGE_BYTES) for page in touched)
        assert resident == sum(max(0, overlap) for overlap in overlaps)
    firsts = np.array([start + page * PAGE_BYTES for page in touched], np.uint64)
    assert found.present_pages(firsts, 1).all()
    missing = firsts[np.isin(firsts, firsts + np.uint64(PAGE_BYTES), invert=True)] - np.uint64(PAGE_BYTES)
    assert not found.present_pages(missing, 1).any()


def test_pieces_are_where_regions_and_mappings_overlap() -> None:
    regions = np.array([4, 5, 9], np.int64)
    low, high = 4 * REGION_BYTES + PAGE_BYTES, 9 * REGION_BYTES + 2 * PAGE_BYTES
    beside = (0, 4 * REGION_BYTES), (12 * REGION_BYTES, 13 * REGION_BYTES)
    found = list(pieces(regions, [beside[0], (low, high), beside[1]]))
    per_region = REGION_BYTES // PAGE_BYTES
    assert found == [(low, 6 * REGION_BYTES, 1), (9 * REGION_BYTES, high, 2 * per_region)]
    assert list(pieces(regions[:0], [(low, high)])) == []


def test_nothing_is_resident_in_an_empty_map() -> None:
    nothing = np.zeros((0, REGION_BYTES // PAGE_BYTES), bool)
    found = PageMap(0, GIB, np.empty(0, np.int64), nothing, nothing, True)
    edges = np.array([0, MIB, 2**64 - PAGE_BYTES], np.uint64)
    assert found.resident_between(edges[:-1], edges[1:]).tolist() == [0, 0]
    assert not found.present_pages(edges, 3).any()


def test_why_of_a_huge_block_takes_little_memory(lib: Path, compile_c: Callable[..., Path]) -> None:
    """It took 7 bytes and more of the tool for each page of 200 GiB."""
    with running([compile_c(PROGRAM)], lib, {"HAKMEM_HELPER_THREAD": "0"}) as process:
        assert isinstance(process, subprocess.Popen)
        target = open_process(process.pid)
        tracemalloc.start()
        try:
            found = explain(target)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(line.bytes for line in found.lines) == pytest.approx(found.rss_bytes, rel=0.01)
    assert peak_bytes < 150 * MIB
