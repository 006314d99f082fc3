"""hakmem trace: what a program did, told by its recording; and files that are not whole."""

import json
import re
import resource
import subprocess
from contextlib import nullcontext
from os import geteuid, nice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hakmem.base.errors import HakmemError
from hakmem.target.switch import Switch
from hakmem.target.target import open_process
from hakmem.trace import resolving
from hakmem.trace.figures import figures_of
from hakmem.trace.file import COLUMNS, Trace, Writer, read, write
from hakmem.trace.lives import Frame, Lives
from hakmem.trace.record import record
from hakmem.trace.resolving import Piece, Resolver
from hakmem.trace.words import MOVED, Clock, Decoder, Events, Op, Word, clocks_of
from results import Compile
from tool.conftest import Start, Tool
from tool.processes import begun, wait_until

HANDED, KEPT, BEFORE, GROWN = 20_000, 500, 300, 5 << 20  # as programs/traced.c has them


def test_what_the_program_did(traced: Path) -> None:
    trace = read(traced)
    assert trace.end is not None
    assert (trace.end["end"], trace.end["lost"]) == ("duration reached", 0)
    figures = figures_of(trace)
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
    memory, extent = trace.memory, trace.extent
    assert memory is not None
    assert memory.committed_bytes.max() > figures.peak_live_bytes
    assert figures.peak_anonymous_bytes == memory.anonymous_bytes.max() > 3000 * HANDED
    assert memory.rss_bytes - memory.other_bytes == pytest.approx(memory.anonymous_bytes, abs=1 << 20)
    assert trace.end["remote_freed_blocks"] == pytest.approx(HANDED, rel=0.01)
    assert memory.times_ns[0] < extent.first_ns < extent.last_ns < memory.times_ns[-1]
    assert figures.freed_elsewhere > 0.9


@pytest.mark.long("a second of processor time")
def test_from_the_first_malloc_to_the_end(
    tool: Tool, compiled: Compile, stepper: Start, tmp_path: Path
) -> None:
    """Of the program that the child executes; each event, though it begins and ends at once."""
    path = tmp_path / "x.hkt"
    words = [tool.path, "run", "-o", path, "--", "sh", "-c", 'exec "$0"', compiled("traced", "-pthread")]
    program = stepper(words, "ready", preload=False, HAKMEM_LIBRARY=str(tool.library))
    program.go_on("done")
    program.go_on()
    assert program.process.wait() == 0
    trace = read(path)
    rows = {row.up_to_bytes: row for row in figures_of(trace).sizes}
    assert (rows[4096].blocks, rows[1024].blocks, rows[16384].blocks) == (HANDED, KEPT, BEFORE)
    assert rows[16384].bytes == 10_000 * BEFORE
    assert trace.end is not None
    assert [trace.end[name] for name in ("lost", "unseen_frees", "unknown_frees")] == [0, 0, 0]
    assert [one.name for one in tmp_path.iterdir()] == ["x.hkt"]


def test_run_ends_as_the_program_does(tool: Tool, tmp_path: Path) -> None:
    ended = tool("run", "-o", tmp_path / "x.hkt", "--", "sh", "-c", "(exit 0); kill -9 $$")
    assert ended.status == -9
    assert "was killed by signal 9" in ended.stderr
    assert "1 other process on hakmem" in ended.stderr
    assert read(tmp_path / "x.hkt").extent.events


def test_shown(traced: Path, tool: Tool) -> None:
    shown = tool("trace", traced).stdout
    assert "≤ 4.00 KiB" in shown
    assert f"{HANDED / 1000:.1f} k" in shown
    told = tool.json("trace", traced)
    assert told["figures"]["sizes"]
    assert told["head"]["hakmem_trace"] == 1


@pytest.mark.long("2 seconds of processor time")
def test_recorded_by_the_command(tool: Tool, stepper: Start, compiled: Compile, tmp_path: Path) -> None:
    busy, path = compiled("busy", "-pthread"), tmp_path / "busy.hkt"
    ended = tool("run", "-o", path, "--", busy, "600", "500")  # threads, which are cancelled
    assert ended.status == 0
    figures = figures_of(read(path))
    assert (figures.threads, read(path).lost) == (501, 0), ended.stderr
    program = stepper([busy, "300"], "ready")
    assert tool("trace", program.pid, "--for", "0.2s", "-o", path).status == 0
    assert tool("trace", path, "--anonymous", "-o", path).status == 0
    assert read(path).head.keys() == {"hakmem_trace", "hakmem", "machine"}
    ended = tool("trace", program.pid, "--for", "0.5s", "-o", path)
    assert ended.status == 0, ended.stderr
    assert figures_of(read(path)).allocated_blocks > 1000
    shown = tool("trace", path).stdout
    counts = (
        re.search(r" ([0-9.]+ ?[kM]?) events,", ended.stderr),
        re.search(r"^Events +(.*) in ", shown, re.MULTILINE),
    )
    assert len({count[1] for count in counts if count}) == 1, (ended.stderr, shown)
    before, seen = nice(0), set[int]()
    bar = lambda title, _: nullcontext(lambda *_: title.startswith("recording") and seen.add(nice(0)))  # noqa: E731
    record(open_process(program.pid), path, 0.2, bar)
    assert (seen, nice(0)) == ({min(before, -10) if geteuid() == 0 else before}, before)
    with Switch(open_process(program.pid)) as other:
        other.trace(10.0)
        ended = tool("trace", program.pid, "-o", tmp_path / "second.hkt")
        other.trace(0)
    assert ended.status == 1
    assert "traced by another command" in ended.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["busy.hkt"]


def test_the_size_of_a_recording(tool: Tool, busy: subprocess.Popen[str], tmp_path: Path) -> None:
    path = tmp_path / "x.hkt"
    ended = tool("trace", busy.pid, "--for", "5m", "--max-size", "1.5MiB", "-o", path)
    assert ended.status == 0
    assert "the recording reached 1.50 MiB (--max-size)" in ended.stderr
    assert read(path).extent.events > 1.5 * (1 << 20) / 8  # bytes an event at most
    for text, said in ("1", "must be at least 1.00 MiB"), ("much", "'much' is not a size; examples: 512M"):
        ended = tool("trace", busy.pid, "--max-size", text, "-o", path)
        assert (ended.status, said in ended.stderr) == (2, True), ended.stderr


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("end", ["a full disk", "kill -9"])
def test_a_recorder_that_dies(busy: subprocess.Popen[str], tmp_path: Path, end: str) -> None:
    """The program goes on, and the file is whole up to its last block."""
    part, is_killed = tmp_path / "x.hkt.part", end == "kill -9"
    limit = lambda: is_killed or resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # noqa: E731
    with begun("trace", busy.pid, "-o", tmp_path / "x.hkt", preexec_fn=limit) as tool:
        wait_until(lambda: part.exists() and part.stat().st_size >= 200_000, "it does not begin")
        tool.send_signal(9 if is_killed else 0)
        _, said = tool.communicate(timeout=60)
    assert ("it is complete up to here" in said) != is_killed
    assert read(part).extent.events > 10_000
    assert busy.poll() is None


def test_anonymized(traced: Path, tool: Tool, tmp_path: Path) -> None:
    once, twice = tmp_path / "once.hkt", tmp_path / "twice.hkt"
    for trace, output in ((traced, once), (once, twice)):
        ended = tool("trace", trace, "--anonymous", "-o", output)
        assert ended.status == 0, ended.stderr
    assert ", anonymous\n" in tool("trace", traced, "--anonymous").stdout
    refused = tool("trace", traced, "-o", tmp_path / "x.html")
    assert (refused.status, "hakmem record PID" in refused.stderr) == (1, True)
    assert once.read_bytes() == twice.read_bytes()
    before, after = read(traced), read(once)
    assert set(after.head) == {"hakmem_trace", "hakmem", "machine"}
    events = whole(after).events
    assert set(events.threads.tolist()) == {0, 1, 2}
    assert (np.diff(events.times_ns) == np.diff(whole(before).events.times_ns)).all()
    assert after.memory is not None
    assert min(events.times_ns[0], after.memory.times_ns[0]) == 0
    assert figures_of(after) == figures_of(before)
    assert after.end == before.end


# ---- files ------------------------------------------------------------------------------------------


def test_cut_anywhere(traced: Path, tmp_path: Path) -> None:
    """What was written whole is read, and nothing else."""
    whole, path = traced.read_bytes(), tmp_path / "cut.hkt"
    all_events = read(traced).extent.events
    head_bytes = whole.index(b"\n") + 1
    found = []
    for length in np.linspace(head_bytes, len(whole) - 2, 12).astype(int):
        path.write_bytes(whole[:length])
        trace = read(path)
        assert trace.end is None
        found.append(trace.extent.events)
    assert (found, found[0], found[-1]) == (sorted(found), 0, all_events)
    path.write_bytes(whole[: head_bytes // 2])
    with pytest.raises(HakmemError, match="is not a trace"):
        read(path)


def test_files_that_are_refused(tmp_path: Path, tool: Tool) -> None:
    """One of a newer version; one that frees a block that is still to come."""
    path = tmp_path / "x.hkt"
    path.write_text(json.dumps({"hakmem_trace": 2}) + "\n")
    newer = tool("trace", path)
    path.write_text(json.dumps({"hakmem_trace": 1, "libraries": {"libc.so": "big"}}) + "\n")
    assert "is damaged" in tool("trace", path).stderr
    writer = Writer(path, {})
    writer.table("events", {name: np.full(1, name == "op", dtype) for name, dtype in COLUMNS.items()})
    writer.close()
    damaged = tool("trace", path)
    assert (newer.status, "version 2" in newer.stderr) == (1, True)
    assert (damaged.status, "is damaged" in damaged.stderr) == (1, True)


# ---- words and lives ----------------------------------------------------------------------------------


def word(operation: Word, what: int) -> int:
    return what << 3 | operation


def clock(ticks: int, ns: int, lost: int = 0, thread: int = 3) -> list[int]:
    parts = [number >> 29 * part & (1 << 29) - 1 for number in (ticks, ns) for part in range(3)]
    return [word(Word.CLOCK, part) for part in (*parts, lost, thread)]


def test_sizes_and_places() -> None:
    """Without a size it is that of the slab before; an address has two halves."""
    words = [*clock(1 << 60, 7, 5), word(Word.REGION, 0x7FFF), word(Word.SIZE, 100), word(Word.TAKE, 2)]
    words += [word(Word.SIZE, 70), word(Word.TAKE, 1 << 13), word(Word.TAKE, 3), word(Word.FREE, 2)]
    words += [word(Word.SIZE, 2 << 27 | 12), word(Word.SIZE, 1 << 27 | 9), word(Word.SIZE, 6)]
    words += [word(Word.TAKE, 4), *clock(1 << 61, 8, 9), word(Word.REGION, 1), word(Word.FREE, 5)]
    ends = [place + 1 for place, one in enumerate(words) if one & 7 in (Word.TAKE, Word.FREE)]
    for cuts in [len(words)], ends:  # at once, and an event at a time
        decoder = Decoder()
        parts = np.split(np.array(words, np.uint32), cuts)
        taken = Events.joined([decoder.events_of(part) for part in parts])
        assert taken.sizes.tolist() == [100, 70, 100, 0, 9 << 27 | 6, 0]
        high = 0x7FFF << 32
        assert taken.addresses.tolist() == [*(high | 8 * at for at in (2, 1 << 13, 3, 2, 4)), 1 << 32 | 40]
        assert taken.alignments.tolist() == [0, 0, 0, 0, 12, 0]
        assert (decoder.lost, set(taken.threads.tolist())) == (9, {3})
    assert clocks_of(np.array(words, np.uint32))[0].tolist() == [1 << 60, 1 << 61]


def test_blocks_that_realloc_moved_between_two_readings() -> None:
    """The free that ends a realloc is marked, though the resize that begins it came in an earlier piece."""
    begin = [*clock(0, 0), word(Word.REGION, 0), word(Word.SIZE, 8), word(Word.TAKE, 1)]
    mark = [word(Word.SIZE, 0), word(Word.RESIZE, 1)]
    for moves in [[(Word.TAKE, 2), (Word.FREE, 1)]], [[(Word.TAKE, n) for n in (2, 3)], [(Word.FREE, 2)]]:
        pieces = [[*begin, *mark], *([word(*one) for one in some] for some in moves), [word(Word.FREE, 1)]]
        decoder = Decoder()
        found = Events.joined([decoder.events_of(np.array(piece, np.uint32)) for piece in pieces])
        assert Op.RESIZE not in found.ops
        marked = found.addresses[found.sizes == MOVED]
        assert marked[:1].tolist() == [8]


def test_a_clock_of_all_threads() -> None:
    """A tick is 10 ns; readings of interrupted threads are late, the last one most."""
    ticks = np.array([400, 0, 450, 500, 800, 900])
    late = np.array([0, 0, 300, 5, 0, 2000])
    found = Clock.of(ticks, 7 + 10 * ticks + late)
    assert found.ns_of(np.array([0, 450, 900])).tolist() == [7, 4507, 9007]
    assert Clock.of(ticks[:1], ticks[:1]).ns_of(np.array([500])).tolist() == [500]


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
    resolver = resolved(rows)
    trace = Trace({}, resolver.lives, 0, {"end": "done"}, None)
    write(tmp_path / "x", trace)
    assert figures_of(read(tmp_path / "x")).sizes == figures_of(trace).sizes
    assert sorted(births_and_deaths(trace)[1]) == sorted(deaths)
    assert (resolver.exchanged, resolver.unseen_frees, resolver.unknown_frees) == figures


@pytest.mark.parametrize("seed", range(20))
def test_any_program(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few addresses come and go, by several threads; and the file says the same, however few
    events are resolved at a time."""
    random = Random(seed)
    rows, births, deaths, live = program(random)
    monkeypatch.setattr(resolving, "SLACK_NS", 0)
    monkeypatch.setattr(resolving, "WORDS_AT_ONCE", random.choice([1, 10, 100, 10_000]))
    trace = Trace({}, resolved(rows, random).lives, 0, {"end": "done"}, None)
    write(tmp_path / "x", trace)
    for found in (trace, read(tmp_path / "x")):
        assert births_and_deaths(found) == (births, deaths)
        assert figures_of(found).live_curve[-1] == 8 * live


def program(random: Random) -> tuple[list[tuple[Op, int, int, int]], list[int], list[int], int]:
    """Its events, the rows of births and deaths, and how many blocks live at its end."""
    rows, current = [], dict[int, int]()
    births, deaths = list[int](), list[int]()
    for row in range(200):
        address = 8 * random.randrange(1, 9)
        op = random.choice([Op.FREE, Op.FREE, Op.RESIZE]) if address in current else Op.TAKE
        rows.append((op, address, random.randrange(1, 4), row * FAR))
        if op == Op.TAKE:
            current[address] = len(births)
            births.append(row)
            deaths.append(-1)
        elif op == Op.FREE:
            deaths[current.pop(address)] = row
    return rows, births, deaths, len(current)


@pytest.mark.parametrize("slack_ns", [0, 5 * FAR, 1 << 40])
def test_blocks_that_were_live_come_first(slack_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the time of the first event, though that may be resolved late, or never come."""
    monkeypatch.setattr(resolving, "SLACK_NS", slack_ns)
    monkeypatch.setattr(resolving, "WORDS_AT_ONCE", 1)
    rows = [(L, 8, 0, 0), (L, 16, 0, 0)]
    rows += [(op, 24, 1, (3 + n) * FAR) for n in range(20) for op in (T, F)]
    events = whole(Trace({}, resolved(rows, Random(1)).lives, 0, None, None)).events
    assert events.ops[:3].tolist() == [L, L, T]
    assert set(events.times_ns[:3].tolist()) == {3 * FAR}
    assert len(events) == len(rows)
    nothing = whole(Trace({}, resolved(rows[:2]).lives, 0, None, None)).events
    assert (nothing.ops.tolist(), set(nothing.times_ns.tolist())) == ([L, L], {10 * FAR})


def births_and_deaths(trace: Trace) -> tuple[list[int], list[int]]:
    """The rows of each block."""
    lives = whole(trace)
    ops, births = lives.events.ops, list[int]()
    deaths = [-1] * int(((ops == Op.TAKE) | (ops == Op.LIVE)).sum())
    for row, (op, number) in enumerate(zip(ops.tolist(), lives.numbers.tolist(), strict=True)):
        if op in (Op.TAKE, Op.LIVE):
            assert number == len(births)
            births.append(row)
        elif op == Op.FREE:
            deaths[number] = row
    return births, deaths


def whole(trace: Trace) -> Lives:
    parts = list(trace.lives())
    return Lives(Events.joined([one.events for one in parts]), np.concatenate([one.numbers for one in parts]))


def resolved(rows: list[tuple[Op, int, int, int]], random: Random | None = None) -> Resolver:
    """Of the words of each thread's ring, which are read once, or in turns of a few events."""
    frame = Frame(*np.array([(one[1], 8) for one in rows if one[0] == Op.LIVE], np.uint64).reshape(-1, 2).T)
    rows, pieces, known = [one for one in rows if one[0] != Op.LIVE], list[Piece](), set[int]()
    while rows:
        count = random.randrange(1, 30) if random else len(rows)
        some, rows = rows[:count], rows[count:]
        for thread in {one[2] for one in some}:
            words = [] if thread in known else [*clock(0, 0, 0, thread), word(Word.REGION, 0)]
            known.add(thread)
            for op, address, by, time in some:
                if by == thread:
                    size = [] if op == Op.FREE else [word(Word.SIZE, 8)]
                    words += [word(Word.TIME, time), *size, word(WORDS[op], address >> 3)]
            pieces.append(Piece(rows[0][3] if rows else 1 << 40, thread, np.array(words, np.uint32)))
    return Resolver(lambda: iter(pieces), frame, 10 * FAR)


WORDS = {Op.TAKE: Word.TAKE, Op.FREE: Word.FREE, Op.RESIZE: Word.RESIZE}


def test_columns_are_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "TRACES.md").read_text()
    assert all(f"`{name}` | {dtype[1:]}" in text for name, dtype in COLUMNS.items())
