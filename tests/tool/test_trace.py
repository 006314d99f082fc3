"""hakmem trace: what a program did, told by its recording; and files that are not whole."""

import json
import re
import resource
import subprocess
from os import geteuid, nice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from browser import LOOK_AT_CHARTS, Elements, browser_of, seen_in_browser
from hakmem.base.errors import HakmemError
from hakmem.target.switch import Switch
from hakmem.target.target import open_process
from hakmem.trace.figures import figures_of
from hakmem.trace.file import COLUMNS, Trace, Writer, read, write
from hakmem.trace.lives import lives_of
from hakmem.trace.record import record
from hakmem.trace.words import Events, Op, Word, events_of, set_times
from results import Compile, Find
from tool.conftest import Start, Tool
from tool.processes import begun, wait_until

HANDED, KEPT, BEFORE, GROWN = 20_000, 500, 300, 5 << 20  # as programs/traced.c has them


def test_what_the_program_did(traced: Path) -> None:
    trace = read(traced)
    assert trace.end is not None
    assert (trace.end["end"], trace.end["lost"]) == ("duration reached", 0)
    figures = figures_of(trace.lives, trace.memory)
    rows = {row.up_to_bytes: row for row in figures.sizes}
    assert rows[4096].blocks == HANDED
    assert rows[4096].bytes == 3000 * HANDED
    assert rows[4096].live_bytes == 0
    assert rows[1024].blocks == KEPT
    assert rows[1024].live_bytes == 700 * KEPT
    assert rows[16384].live_bytes == pytest.approx(10_000 * BEFORE / 2, rel=0.2)  # their class's size
    assert rows[8 << 20].live_bytes in range(GROWN - 40_000, GROWN + 1)
    assert figures.peak_live_bytes >= 3000 * HANDED
    assert figures.threads == 2
    memory, times = trace.memory, trace.lives.events.times_ns
    assert memory is not None
    assert memory.committed_bytes.max() > figures.peak_live_bytes
    assert figures.peak_anonymous_bytes == memory.anonymous_bytes.max() > 3000 * HANDED
    assert memory.rss_bytes - memory.other_bytes == pytest.approx(memory.anonymous_bytes, abs=1 << 20)
    assert trace.end["remote_freed_blocks"] == pytest.approx(HANDED, rel=0.01)
    assert memory.times_ns[0] < times[0] < times[-1] < memory.times_ns[-1]
    assert figures.freed_elsewhere > 0.9


def test_from_the_first_malloc_to_the_end(
    tool: Tool, compiled: Compile, stepper: Start, tmp_path: Path
) -> None:
    """Of the program that the child executes; each event, though it begins and ends at once."""
    path = tmp_path / "x.hkt"
    words = [tool.path, "run", "--trace", path, "--", "sh", "-c", 'exec "$0"', compiled("traced", "-pthread")]
    program = stepper(words, "ready", preload=False, HAKMEM_LIBRARY=str(tool.library))
    program.go_on("done")
    program.go_on()
    assert program.process.wait() == 0
    trace = read(path)
    rows = {row.up_to_bytes: row for row in figures_of(trace.lives).sizes}
    assert (rows[4096].blocks, rows[1024].blocks, rows[16384].blocks) == (HANDED, KEPT, BEFORE)
    assert rows[16384].bytes == 10_000 * BEFORE
    assert trace.end is not None
    assert [trace.end[name] for name in ("lost", "unseen_frees", "unknown_frees")] == [0, 0, 0]
    assert [one.name for one in tmp_path.iterdir()] == ["x.hkt"]


def test_run_ends_as_the_program_does(tool: Tool, tmp_path: Path) -> None:
    ended = tool("run", "--trace", tmp_path / "x.hkt", "--", "sh", "-c", "(exit 0); kill -9 $$")
    assert ended.status == -9
    assert "was killed by signal 9" in ended.stderr
    assert "1 other process on hakmem" in ended.stderr
    assert read(tmp_path / "x.hkt").lives.events.ops.size


def test_shown(traced: Path, tool: Tool) -> None:
    shown = tool("trace", "show", traced).stdout
    assert "≤ 4.00 KiB" in shown
    assert f"{HANDED / 1000:.1f} k" in shown
    told = tool.json("trace", "show", traced)
    assert told["figures"]["sizes"]
    assert told["head"]["hakmem_trace"] == 1


def test_recorded_by_the_command(tool: Tool, stepper: Start, compiled: Compile, tmp_path: Path) -> None:
    busy, path = compiled("busy", "-pthread"), tmp_path / "busy.hkt"
    ended = tool("run", "--trace", path, "--", busy, "60", "500")  # threads, which are cancelled
    assert (ended.status, figures_of(read(path).lives).threads) == (0, 501), ended.stderr
    program = stepper([busy, "300"], "ready")
    ended = tool("trace", program.pid, "--for", "0.5s", "-o", path)
    assert ended.status == 0, ended.stderr
    assert figures_of(read(path).lives).allocated_blocks > 1000
    before, seen = nice(0), set[int]()
    record(open_process(program.pid), path, 0.2, lambda *_: seen.add(nice(0)))
    assert (seen, nice(0)) == ({min(before, -10) if geteuid() == 0 else before}, before)
    with Switch(open_process(program.pid)) as other:
        other.trace(10.0)
        ended = tool("trace", program.pid, "-o", tmp_path / "second.hkt")
        other.trace(0)
    assert ended.status == 1
    assert "traced by another command" in ended.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["busy.hkt"]


@pytest.mark.parametrize("end", ["a full disk", "kill -9"])
def test_a_recorder_that_dies(busy: subprocess.Popen[str], tmp_path: Path, end: str) -> None:
    """The program goes on, and the file is whole up to its last block."""
    part, is_killed = tmp_path / "x.hkt.part", end == "kill -9"
    limit = lambda: is_killed or resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # noqa: E731
    with begun("trace", busy.pid, "-o", tmp_path / "x.hkt", preexec_fn=limit) as tool:
        wait_until(lambda: part.exists() and part.stat().st_size >= 200_000, "it does not begin")
        tool.send_signal(9 if is_killed else 0)
        _, said = tool.communicate(timeout=60)
    assert ("it is whole up to here" in said) != is_killed
    assert read(part).lives.events.ops.size > 10_000
    assert busy.poll() is None


def test_page(traced: Path, tool: Tool, program: Find, tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    assert str(page) in tool("trace", "show", traced, "--html", page).stdout
    text = page.read_text()
    assert Elements(text).loaded == []
    assert Elements(text).ids[1:6] == ["memory", "events", "elsewhere", "lifetimes", "sizes"]
    look = LOOK_AT_CHARTS + 'seen.lifetimes = document.getElementById("lifetimes").textContent;'
    seen = seen_in_browser(text, look, browser_of(program), tmp_path)
    assert (seen["faults"], seen["requests"], seen["fits"], seen["shown"]) == ([], [], True, 3)
    assert re.search(r"live blocks.*MiB.*anonymous RSS.*MiB", str(seen["tip"]))
    assert f"≤ 1.00 KiB{KEPT}\n" in str(seen["lifetimes"])


def test_anonymized(traced: Path, tool: Tool, tmp_path: Path) -> None:
    once, twice = tmp_path / "once.hkt", tmp_path / "once.anonymous.hkt"
    for words in ((traced, "-o", once), (once,)):
        ended = tool("trace", "anonymize", *words)
        assert ended.status == 0, ended.stderr
    assert once.read_bytes() == twice.read_bytes()
    before, after = read(traced), read(once)
    assert set(after.head) == {"hakmem_trace", "hakmem", "machine"}
    events = after.lives.events
    assert set(events.threads.tolist()) == {0, 1, 2}
    assert (np.diff(events.times_ns) == np.diff(before.lives.events.times_ns)).all()
    assert after.memory is not None
    assert min(events.times_ns[0], after.memory.times_ns[0]) == 0
    assert figures_of(after.lives, after.memory) == figures_of(before.lives, before.memory)
    assert after.end == before.end


# ---- files ------------------------------------------------------------------------------------------


def test_cut_anywhere(traced: Path, tmp_path: Path) -> None:
    """What was written whole is read, and nothing else."""
    whole, path = traced.read_bytes(), tmp_path / "cut.hkt"
    all_events = len(read(traced).lives.events)
    head_bytes = whole.index(b"\n") + 1
    found = []
    for length in np.linspace(head_bytes, len(whole) - 2, 12).astype(int):
        path.write_bytes(whole[:length])
        trace = read(path)
        assert trace.end is None
        found.append(len(trace.lives.events))
    assert (found, found[0], found[-1]) == (sorted(found), 0, all_events)
    path.write_bytes(whole[: head_bytes // 2])
    with pytest.raises(HakmemError, match="is not a trace"):
        read(path)


def test_files_that_are_refused(tmp_path: Path, tool: Tool) -> None:
    """One of a newer version; one that frees a block that is still to come."""
    path = tmp_path / "x.hkt"
    path.write_text(json.dumps({"hakmem_trace": 2}) + "\n")
    newer = tool("trace", "show", path)
    path.write_text(json.dumps({"hakmem_trace": 1, "libraries": {"libc.so": "big"}}) + "\n")
    assert "is damaged" in tool("trace", "show", path).stderr
    writer = Writer(path, {})
    writer.table("events", {name: np.full(1, name == "op", dtype) for name, dtype in COLUMNS.items()})
    writer.close()
    damaged = tool("trace", "show", path)
    assert (newer.status, "version 2" in newer.stderr) == (1, True)
    assert (damaged.status, "is damaged" in damaged.stderr) == (1, True)


# ---- words and lives ----------------------------------------------------------------------------------


def word(operation: Word, what: int) -> int:
    return what << 3 | operation


def events(*rows: tuple[Op, int, int, int]) -> Events:
    """(op, address, thread, time)."""
    ops, addresses, threads, times = (np.array(column) for column in zip(*rows, strict=True))
    return Events(ops.astype(np.int8), addresses.astype(np.uint64), np.full(len(rows), 8, np.uint64),
                  np.zeros(len(rows), np.uint8), threads, times)  # fmt: skip


def clock(ticks: int, ns: int, lost: int = 0, thread: int = 3) -> list[int]:
    parts = [number >> 29 * part & (1 << 29) - 1 for number in (ticks, ns) for part in range(3)]
    return [word(Word.CLOCK, part) for part in (*parts, lost, thread)]


def test_sizes_and_places() -> None:
    """Without a size it is that of the slab before; an address has two halves."""
    words = [*clock(1 << 60, 7, 5), word(Word.REGION, 0x7FFF), word(Word.SIZE, 100), word(Word.TAKE, 2)]
    words += [word(Word.SIZE, 70), word(Word.TAKE, 1 << 13), word(Word.TAKE, 3), word(Word.FREE, 2)]
    words += [word(Word.SIZE, 2 << 27 | 12), word(Word.SIZE, 1 << 27 | 9), word(Word.SIZE, 6)]
    words += [word(Word.TAKE, 4), *clock(1 << 61, 8, 9), word(Word.REGION, 1), word(Word.FREE, 5)]
    taken = events_of(np.array(words, np.uint32))
    assert taken.events.sizes.tolist() == [100, 70, 100, 0, 9 << 27 | 6, 0]
    high = 0x7FFF << 32
    assert taken.events.addresses.tolist() == [*(high | 8 * at for at in (2, 1 << 13, 3, 2, 4)), 1 << 32 | 40]
    assert taken.events.alignments.tolist() == [0, 0, 0, 0, 12, 0]
    assert (taken.lost, set(taken.events.threads.tolist())) == (9, {3})
    assert taken.clock_ticks.tolist() == [1 << 60, 1 << 61]


def test_times_of_a_ring_with_one_clock() -> None:
    """All processors have one: a tick is 10 ns here, though the second ring cannot know."""
    rings = []
    for ticks, clocks in (((0, 500, 900), (0, 900)), ((400, 450, 800), (400,))):
        words = []
        for tick in ticks:
            started = max(one for one in clocks if one <= tick)
            words += clock(tick, 7 + 10 * tick) if tick in clocks else []
            words += [word(Word.TIME, tick - started), word(Word.FREE, 1)]
        rings.append(events_of(np.array(words, np.uint32)))
    set_times(rings)
    assert rings[0].events.times_ns.tolist() == [7, 5007, 9007]
    assert rings[1].events.times_ns.tolist() == [4007, 4507, 8007]


NEAR, FAR, T, F, L = 100, 1_000_000, Op.TAKE, Op.FREE, Op.LIVE
TWICE = [(T, 8, 1, 0), (F, 8, 1, 1), (F, 8, 2, FAR), (T, 8, 1, FAR + NEAR)]


@pytest.mark.parametrize(
    ("rows", "deaths", "figures"),
    [
        ([(T, 8, 1, 0), (F, 8, 2, 1)], [1], (0, 0, 0)),
        ([(T, 8, 1, 0), (T, 8, 2, FAR), (F, 8, 1, FAR + NEAR)], [1, -1], (1, 0, 0)),
        ([(T, 8, 1, 0), (T, 8, 2, FAR), (F, 8, 2, FAR + NEAR)], [1, 3], (0, 1, 0)),
        ([(T, 8, 1, 0), (T, 8, 2, FAR), (F, 8, 2, 3 * FAR)], [1, 3], (0, 1, 0)),
        ([*TWICE, (T, 8, 1, 3 * FAR), (F, 8, 1, 4 * FAR)], [1, 3, 5], (1, 0, 0)),
        ([(L, 8, 0, 0), (T, 8, 1, FAR), (F, 8, 2, FAR + NEAR)], [1, -1], (1, 0, 0)),
        ([(F, 8, 1, 0), (T, 8, 1, 1), (F, 16, 1, 2)], [-1], (0, 0, 2)),
        ([(L, 8, 0, 0), (T, 8, 1, 1)], [-1], (0, 0, 0)),
        ([(L, 8, 0, 0), (F, 8, 1, 1), (F, 8, 1, 2)], [1], (0, 0, 1)),
    ],
)
def test_lives(rows: list[Any], deaths: list[int], figures: tuple[int, int, int], tmp_path: Path) -> None:
    lives = lives_of(events(*rows))
    write(tmp_path / "x", Trace({}, lives, 0, {"end": "done"}, None))
    assert figures_of(read(tmp_path / "x").lives).sizes == figures_of(lives).sizes
    assert sorted(lives.death_rows.tolist()) == sorted(deaths)
    assert (lives.exchanged, lives.unseen_frees, lives.unknown_frees) == figures


@pytest.mark.parametrize("seed", range(50))
def test_any_program(seed: int, tmp_path: Path) -> None:
    """Blocks of a few addresses come and go; and the file says the same."""
    rows, current, random = [], {}, Random(seed)
    births, deaths = list[int](), list[int]()
    for row in range(200):
        address = 8 * random.randrange(1, 9)
        op = random.choice([Op.FREE, Op.FREE, Op.RESIZE]) if address in current else Op.TAKE
        rows.append((op, address, 1, row))
        if op == Op.TAKE:
            current[address] = len(births)
            births.append(row)
            deaths.append(-1)
        elif op == Op.FREE:
            deaths[current.pop(address)] = row
    lives = lives_of(events(*rows))
    write(tmp_path / "x", Trace({}, lives, 0, {"end": "done"}, None))
    for found in (lives, read(tmp_path / "x").lives):
        assert (found.birth_rows.tolist(), found.death_rows.tolist()) == (births, deaths)
        assert figures_of(found).live_curve[-1] == 8 * len(current)


def test_columns_are_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "TRACES.md").read_text()
    assert all(f"`{name}` | {dtype[1:]}" in text for name, dtype in COLUMNS.items())
