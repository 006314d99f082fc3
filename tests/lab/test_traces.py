"""The recorder and the simulated heaps of lab/traces: recordings written by hand have known figures."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from shape.sources import ROOT

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]

from harness.allocators import Allocator  # noqa: E402
from traces.cli import recorder, simulate, simulator  # noqa: E402

MAGIC, ROOM = 0x31656361726B6168, 1 << 20
TAKE, FREE = 1, 2
Event = tuple[int, int, int, int]  # address, size, thread, operation


def write(path: Path, events: list[Event]) -> Path:
    header = struct.pack("<Q56xQ56xQ56x", MAGIC, len(events), ROOM)[:192]
    path.write_bytes(header + b"".join(struct.pack("<QIHH", *event) for event in events))
    return path


def figures(recording: Path, policy: str) -> dict[str, float]:
    [head, row] = simulate(recording, [policy])
    assert row[0] == policy
    return dict(zip(head[1:], map(float, row[1:]), strict=True))


@pytest.mark.parametrize(("policy", "visits", "transfers"), [("cache=8,own=0", 14, 1), ("cache=8", 30, 2)])
def test_blocks_that_another_thread_frees(policy: str, visits: int, transfers: int, tmp_path: Path) -> None:
    """A cache of 8 KiB has 64 blocks, half a batch: 16 refills in one thread, 14 flushes in the other."""
    places = [(i + 1) * 128 for i in range(512)]
    events = [(place, 128, 1, TAKE) for place in places] + [(place, 0, 2, FREE) for place in places]
    found = figures(write(tmp_path / "a.trace", events), policy)
    assert found["live MiB"] == found["touched MiB"] == 0.06
    assert found["visits/1000"] == round(visits / 0.512, 2)
    assert found["transfers/1000"] == round(transfers / 0.512, 2)


def test_lines_of_two_threads(tmp_path: Path) -> None:
    """Batches of 3 blocks of 48 bytes end inside lines, which the other thread's next batch begins with."""
    events = [((i + 1) * 48, 48, i // 3 % 2 + 1, TAKE) for i in range(600)]
    recording = write(tmp_path / "a.trace", events)
    assert figures(recording, "cache=0,lines=0")["shared lines/1000"] > 100
    kept = figures(recording, "cache=0,lines=1")
    assert kept["shared lines/1000"] == 0
    assert kept["ratio"] < 2


def test_free_blocks_are_lent(tmp_path: Path) -> None:
    """The first thread keeps one of 512 blocks; the second takes 256, of that slab or of one of its own."""
    places = [(i + 1) * 128 for i in range(768)]
    events = [(place, 128, 1, TAKE) for place in places[:512]]
    events += [(place, 0, 1, FREE) for place in places[1:512]]
    recording = write(tmp_path / "a.trace", events + [(place, 128, 2, TAKE) for place in places[512:]])
    assert figures(recording, "cache=8,own=0")["touched MiB"] == 0.09
    assert figures(recording, "cache=8,own=0,lend=1,lines=1")["touched MiB"] == 0.06


def test_ownership_is_earned(tmp_path: Path) -> None:
    events = [((i + 1) * 1024, 1024, 1, TAKE) for i in range(4096)]
    recording = write(tmp_path / "a.trace", events)
    never, earned = figures(recording, "cache=32"), figures(recording, "cache=32,own=256,steady=4")
    assert 0 < earned["visits/1000"] < never["visits/1000"] / 8


def test_a_class_fits_most_requests(tmp_path: Path) -> None:
    events = [((i + 1) * 1024, 264 + i % 3 // 2 * 24, 1, TAKE) for i in range(12000)]
    recording = write(tmp_path / "a.trace", events)
    plain, fitted = figures(recording, "cache=32,own=0"), figures(recording, "cache=32,own=0,fit=1")
    assert (
        0.86 < fitted["touched MiB"] / plain["touched MiB"] < 0.92
    )  # two of three are of 272 bytes, not 320


def test_wrong_input(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no recording" * 100)
    for words, message in (
        ([str(text), "cache=8"], "is not a recording"),
        ([], "usage: simulate recording policy"),
        ([str(write(tmp_path / "a.trace", [])), "cash=8"], "a policy is cache=KiB"),
    ):
        done = subprocess.run([simulator(), *words], capture_output=True, text=True, check=False)
        assert done.returncode in {1, 2}
        assert message in done.stderr


def test_a_recorded_program(tmp_path: Path) -> None:
    """Each process has a file, and a thread's end is seen."""
    allocator: Allocator = recorder()
    program = "import threading, os; t = threading.Thread(target=list); t.start(); t.join(); os.fork()"
    environment = {"LD_PRELOAD": allocator.preload, "TRACE_FOLDER": str(tmp_path), "PYTHONMALLOC": "malloc"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    recordings = sorted(tmp_path.glob("*.trace"), key=lambda path: path.stat().st_blocks)
    assert len(recordings) == 2
    with recordings[-1].open("rb") as file:
        parent = file.read(1 << 24)
    count = struct.unpack_from("<Q", parent, 64)[0]
    operations = {struct.unpack_from("<H", parent, 192 + 16 * i + 14)[0] for i in range(count)}
    assert operations >= {TAKE, FREE, 4}
    assert figures(recordings[-1], "cache=32")["live MiB"] > 1
