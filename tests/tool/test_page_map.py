"""Which pages are resident: read where there are any, in reservations of any size."""

import mmap
import os
import random
import struct
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hakmem.census.why import explain
from hakmem.target import pages
from hakmem.target.corefile import CoreMemory
from hakmem.target.pages import PAGE_BYTES, REGION_BYTES, PageMap, core_page_map, pieces, read_page_map
from hakmem.target.process import Process
from hakmem.target.target import open_process
from results import Compile
from tool.processes import PROGRAMS, running
from tool.test_huge import pytestmark

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

        monkeypatch.setattr(pages, "scanned", refused)
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
    found = PageMap(0, GIB, np.empty(0, np.int64), nothing)
    edges = np.array([0, MIB, 2**64 - PAGE_BYTES], np.uint64)
    assert found.resident_between(edges[:-1], edges[1:]).tolist() == [0, 0]
    assert not found.present_pages(edges, 3).any()


def test_why_of_a_huge_block_takes_little_memory(lib: Path, compile_c: Compile) -> None:
    """It took 7 bytes and more of the tool for each page of 200 GiB."""
    with running([compile_c(PROGRAMS / "huge.c")], lib, {"HAKMEM_HELPER_THREAD": "0"}) as process:
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


# ---- cores ---------------------------------------------------------------------------------------------

START, TIB = 0x2000_0000_0000, 1 << 40
HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")


def core_of(path: Path, segments: list[tuple[int, int, int]]) -> CoreMemory:
    """Its segments: address, bytes in memory, bytes in the file, of which nothing is written yet."""
    place = REGION_BYTES
    rows = []
    for address, memory_bytes, file_bytes in segments:
        rows.append(SEGMENT.pack(1, 6, place, address, 0, file_bytes, memory_bytes, PAGE_BYTES))
        place += file_bytes
    head = HEADER.pack(b"\x7fELF", 2, 1, 1, 0, 0, 4, 62, 1, 0, 64, 0, 0, 64, 56, len(rows), 64, 0, 0)
    with path.open("wb") as file:
        file.write(head + b"".join(rows))
        file.truncate(place)
    return CoreMemory(path)


@pytest.mark.parametrize("in_file_bytes", [0, TIB], ids=["left out", "a hole"])
def test_a_core_is_read_where_it_has_something(
    in_file_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terabyte that was reserved is not."""
    path = tmp_path / "core"
    core_of(path, [(START, TIB, in_file_bytes), (START + TIB, GIB, GIB)])
    written = {0: 1, GIB - PAGE_BYTES: 1} | ({} if not in_file_bytes else {-PAGE_BYTES: 1, 5 * MIB - TIB: 1})
    with path.open("r+b") as file:
        for at in written:
            file.seek(REGION_BYTES + in_file_bytes + at)
            file.write(b"x" * 10)
    memory, read = CoreMemory(path), 0
    gather = memory.gather

    def counted(addresses: np.ndarray, counts: np.ndarray) -> np.ndarray:
        nonlocal read
        read += int(counts.sum())
        return gather(addresses, counts)

    monkeypatch.setattr(memory, "gather", counted)
    found = core_page_map(memory, START, START + TIB + GIB, memory.written)
    assert found.resident_bytes == len(written) * PAGE_BYTES
    starts = np.array([START + TIB + at for at in written], np.uint64)
    assert found.present_pages(starts, 1).all()
    assert read <= len(written) * REGION_BYTES
