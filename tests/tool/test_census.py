"""The one count: what `stat` counts in blocks and what `why` weighs with a page map are the same blocks."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hakmem.base.validity import built
from hakmem.census.census import Census, count
from hakmem.census.figures import Snapshot
from hakmem.census.reading import Reading, read_full, read_quick
from hakmem.census.residency import measure
from hakmem.census.snapshot import open_process, take
from hakmem.target.pages import REGION_BYTES, REGION_PAGES, PageMap
from results import Compile
from tool.processes import PROGRAMS, hakmem_json, running

MODES = {
    "default": {},
    "hardened": {"HAKMEM_HARDEN": "1"},
    "quarantine": {"HAKMEM_HARDEN": "2", "HAKMEM_QUARANTINE_BYTES": "4M"},
}


@pytest.fixture(scope="module", params=MODES)
def stopped(request: pytest.FixtureRequest, lib: Path, compile_c: Compile) -> Iterator[int]:
    """The PID of a program whose threads free each other's blocks, stopped in the middle of it."""
    with running([compile_c(PROGRAMS / "busy.c"), "3600"], lib, MODES[request.param]) as process:
        process.send_signal(signal.SIGSTOP)
        yield process.pid


@pytest.fixture
def reading(stopped: int) -> Reading:
    return read_full(open_process(stopped))


def page_map(reading: Reading, is_resident: bool) -> PageMap:
    """A map of the window that says the same of every page."""
    assert reading.walk is not None
    window = reading.walk.window
    end = window.base + window.granule_count * window.granule_bytes
    regions = np.arange(window.base // REGION_BYTES, -(-end // REGION_BYTES))
    flags = np.full((len(regions), REGION_PAGES), is_resident)
    return PageMap(window.base, end, regions, flags)


def blocks_of(census: Census) -> list[tuple[int, ...]]:
    return [
        (c.slabs, c.capacity_blocks, c.free_blocks, c.remote_blocks, c.cached_blocks, c.live_blocks)
        for c in census.classes
    ]


def test_a_page_map_changes_no_count(reading: Reading) -> None:
    counted = blocks_of(count(reading))
    assert sum(row[-1] for row in counted) > 0
    for is_resident in (True, False):
        residency = measure(reading, page_map(reading, is_resident))
        assert blocks_of(Census(reading, residency.classes)) == counted


def test_with_every_page_resident_bytes_are_blocks(reading: Reading) -> None:
    """Then nothing has to be estimated: each part is its blocks, and all parts are the window."""
    pages = page_map(reading, True)
    residency = measure(reading, pages)
    slab_classes = residency.classes[: reading.schema.constant("slab_class_count")]
    assert sum(c.cached_blocks for c in slab_classes) > 0
    for item in slab_classes:
        size = item.block_bytes
        assert item.free_bytes == (item.free_blocks + item.remote_blocks) * size, item
        assert item.cached_bytes == item.cached_blocks * size, item
        assert item.live_bytes == item.live_blocks * size, item
    assert residency.not_resident_live_bytes == 0
    assert residency.accounted_bytes == pages.resident_bytes


def test_without_a_resident_page_nothing_is_resident(reading: Reading) -> None:
    residency = measure(reading, page_map(reading, False))
    assert residency.accounted_bytes == 0
    assert all(c.live_bytes == c.requested_bytes == c.cached_bytes == 0 for c in residency.classes)


def test_quick_and_full_readings_know_the_same_heaps(stopped: int) -> None:
    target = open_process(stopped)
    quick, full = count(read_quick(target)), count(read_full(target))
    names = ("magazine_blocks", "quarantine_blocks", "mean_request_bytes")
    for one, other in zip(quick.classes, full.classes, strict=True):
        assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
    assert [thread.cached_bytes for thread in take(target, "counters").threads] == [
        thread.cached_bytes for thread in take(target).threads
    ]


def test_why_and_stat_see_the_same_blocks(stopped: int) -> None:
    snapshot = built(Snapshot, hakmem_json("stat", stopped))
    live = {item.block_bytes: item.live_blocks for item in snapshot.classes}
    (line,) = (line for line in hakmem_json("why", stopped)["lines"] if line["name"] == "live data")
    seen = {
        detail["block_bytes"]: detail["live_blocks"] for detail in line["details"] if detail["block_bytes"]
    }
    assert seen
    assert seen == {size: live[size] for size in seen}


def test_why_names_the_threads_of_a_container(lib: Path, compile_c: Compile) -> None:
    """There its first thread has another number than outside, and the library does not ask for it."""
    program = compile_c(PROGRAMS / "known.c")
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace of PIDs can be made here")
    with running([*unshare, program], lib, {"LD_PRELOAD": str(lib)}) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        try:
            snapshot, answer = hakmem_json("stat", children[0]), hakmem_json("why", children[0])
        finally:
            os.kill(int(children[0]), signal.SIGKILL)
    (line,) = (line for line in answer["lines"] if line["name"].startswith("magazines"))
    seen = {item["heap"]: (item["thread_id"], item["name"]) for item in line["details"]}
    known = {thread["number"]: (thread["thread_id"], thread["name"]) for thread in snapshot["threads"]}
    assert seen[1] == known[1] == (1, program.name[:15])
