"""The simulated heaps of lab/traces: traces written by hand have known figures."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hakmem.base.errors import HakmemError
from hakmem.trace import file
from hakmem.trace.lives import Follower, Frame
from hakmem.trace.words import Events, Op
from shape.sources import ROOT

sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]

from harness.execute import allocator_environment  # noqa: E402
from harness.workload import Length  # noqa: E402
from traces.campaign import Peaks, markdown, measure  # noqa: E402
from traces.cli import events_of, simulate, simulator  # noqa: E402
from traces.record import recorder  # noqa: E402


def write(path: Path, events: list[tuple[int, int, int, Op]]) -> Path:
    """Address, size, thread, operation.  All at one time: no thread ends before another."""
    addresses, sizes, threads, ops = np.array(events).astype("u8").T
    columns = (ops.astype("i1"), addresses, sizes, np.zeros(len(ops), "u1"))
    lives = Follower(Frame()).follow(Events(*columns, threads.astype("i8"), np.zeros(len(ops), "i8")), True)
    file.write(path, file.Trace({"pid": 1}, lambda: iter([lives]), 0, {"end": "made"}, None))
    return path


def figures(recording: Path, policy: str) -> dict[str, float]:
    [head, row] = simulate(recording, [policy])
    assert row[0] == policy
    return dict(zip(head[1:], map(float, row[1:]), strict=True))


@pytest.mark.parametrize(("policy", "visits", "transfers"), [("cache=8,own=0", 14, 1), ("cache=8", 30, 2)])
def test_blocks_that_another_thread_frees(policy: str, visits: int, transfers: int, tmp_path: Path) -> None:
    """A cache of 8 KiB has 64 blocks, half a batch: 16 refills in one thread, 14 flushes in the other."""
    places = [(i + 1) * 128 for i in range(512)]
    events = [(place, 128, 1, Op.TAKE) for place in places] + [(place, 0, 2, Op.FREE) for place in places]
    found = figures(write(tmp_path / "a.hkt", events), policy)
    assert found["live MiB"] == found["touched MiB"] == 0.06
    assert found["visits/1000"] == round(visits / 0.512, 2)
    assert found["transfers/1000"] == round(transfers / 0.512, 2)


def test_lines_of_two_threads(tmp_path: Path) -> None:
    """Batches of 3 blocks of 48 bytes end inside lines, which the other thread's next batch begins with."""
    events = [((i + 1) * 48, 48, i // 3 % 2 + 1, Op.TAKE) for i in range(600)]
    recording = write(tmp_path / "a.hkt", events)
    assert figures(recording, "cache=0,lines=0")["shared lines/1000"] > 100
    kept = figures(recording, "cache=0,lines=1")
    assert kept["shared lines/1000"] == 0
    assert kept["ratio"] < 2


def test_free_blocks_are_lent(tmp_path: Path) -> None:
    """The first thread keeps one of 512 blocks; the second takes 256, of that slab or of one of its own."""
    places = [(i + 1) * 128 for i in range(768)]
    events = [(place, 128, 1, Op.TAKE) for place in places[:512]]
    events += [(place, 0, 1, Op.FREE) for place in places[1:512]]
    recording = write(tmp_path / "a.hkt", events + [(place, 128, 2, Op.TAKE) for place in places[512:]])
    assert figures(recording, "cache=8,own=0")["touched MiB"] == 0.09
    assert figures(recording, "cache=8,own=0,lend=1,lines=1")["touched MiB"] == 0.06


def test_ownership_is_earned(tmp_path: Path) -> None:
    events = [((i + 1) * 1024, 1024, 1, Op.TAKE) for i in range(4096)]
    recording = write(tmp_path / "a.hkt", events)
    never, earned = figures(recording, "cache=32"), figures(recording, "cache=32,own=256,steady=4")
    assert 0 < earned["visits/1000"] < never["visits/1000"] / 8


def test_a_class_fits_most_requests(tmp_path: Path) -> None:
    events = [((i + 1) * 1024, 264 + i % 3 // 2 * 24, 1, Op.TAKE) for i in range(12000)]
    recording = write(tmp_path / "a.hkt", events)
    plain, fitted = figures(recording, "cache=32,own=0"), figures(recording, "cache=32,own=0,fit=1")
    ratio = fitted["touched MiB"] / plain["touched MiB"]
    assert 0.86 < ratio < 0.92  # two of three are of 272 bytes, not 320


def test_wrong_input(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no recording" * 100)
    with pytest.raises(HakmemError, match="is not a trace"):
        simulate(text, ["cache=8"])
    for words, message in ([], "usage: simulate events policy"), ([text, "cash=8"], "a policy is cache=KiB"):
        done = subprocess.run([simulator(), *words], capture_output=True, text=True, check=False)
        assert (done.returncode in {1, 2}, message in done.stderr) == (True, True)


@pytest.mark.long("20 seconds of replays; test_replay does one")
def test_a_recorded_program(tmp_path: Path) -> None:
    """A thread's end is seen, and a compiler that a driver starts has a file of its own."""
    recording = recorder(tmp_path)
    program = """import os, threading; threading.Thread(target=list).start()
assert os.system("g++ -fsyntax-only -xc++ /dev/null") == 0"""
    environment = allocator_environment(recording) | {"PYTHONMALLOC": "malloc"}
    subprocess.run([*recording.wrapper, sys.executable, "-c", program], env=environment, check=True)
    assert len(list(tmp_path.glob("*.hkt"))) == 2
    assert events_of(file.read(tmp_path / "first.hkt"))["is_last"].sum() == 1
    assert figures(tmp_path / "first.hkt", "cache=32")["live MiB"] > 1
    workload = SimpleNamespace(name="real-x", timed=lambda *_: {"peak_rss_kib": 15_000, "seconds": 0.1})
    peaks = measure(workload, tmp_path / "first.hkt", Length(0.1, quick=True), 1)
    assert all(0.5 < one / peaks.real["hakmem"] < 2 for one in peaks.replayed.values())
    exchanged = Peaks("b", {"hakmem": 100, "glibc": 101, "x": 110}, {"hakmem": 99, "glibc": 98, "x": 90})
    near = Peaks("c", exchanged.real, {"hakmem": 101, "glibc": 100, "x": 110})
    assert (exchanged.exchanged, near.exchanged) == (["hakmem < x", "glibc < x"], [])
    assert "peers: 1 of 2 programs; same ranking: 1," in markdown([exchanged, near])
