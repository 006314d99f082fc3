"""hakmem replay: each event of a trace happens again, on any malloc; and plans that are not whole."""

import re
from pathlib import Path

import numpy as np
import pytest
from hakmem.base.errors import HakmemError
from hakmem.commands.replay import DEFAULT_WITH, chosen_of
from hakmem.launch import contenders, replaying
from hakmem.launch.contenders import Contender
from hakmem.launch.replaying import How, Result, Round, fidelity, fit_written, replayer
from hakmem.trace.file import Trace, read
from hakmem.trace.lives import Lives
from hakmem.trace.memory import Memory
from hakmem.trace.plan import FROM, HEADER, OP, plan_of
from hakmem.trace.words import MOVED, Events, Op
from results import Compile, captured
from tool.conftest import Tool
from tool.test_trace import whole

HANDED_BYTES = 20_000 * 3000  # as programs/traced.c has them
MAIN, OTHER = 7, 8
SAMPLED = b'{"hakmem_trace":1,"sampled":true}\n'


def trace_of(*rows: tuple[Op, int, int, int, int], at_once: int = 1 << 20) -> Trace:
    """(op, number of its block, thread, size, log2 of its alignment), a microsecond apart."""
    ops, numbers, threads, sizes, alignments = (np.array(column) for column in zip(*rows, strict=True))
    events = Events(ops.astype(np.int8), numbers.astype(np.uint64), sizes.astype(np.uint64),
                    alignments.astype(np.uint8), threads, 1000 * np.arange(len(rows)))  # fmt: skip
    lives = Lives(events, numbers)
    parts = [lives.at(slice(start, start + at_once)) for start in range(0, len(rows), at_once)]
    return Trace({"pid": MAIN}, lambda: iter(parts), 0, None, None)


def handed(count: int, at_once: int = 1 << 20) -> Trace:
    """One thread allocates, another resizes and frees; one of 16 is aligned to 4 KiB, one of 500 large."""
    rows = [(Op.LIVE, 0, 0, 4 << 20, 0)]
    for number in range(1, count):
        size = 1 << (number % 11 if number % 500 else 20)
        rows += [(Op.TAKE, number, MAIN, size, 12 if number % 16 == 0 else 0)]
        rows += [(Op.RESIZE, number, OTHER, 2 * size, 0)] * (number % 3) + [(Op.FREE, number, OTHER, 0, 0)]
    return trace_of(*rows, at_once=at_once)


def ops_of(trace: Trace, path: Path) -> tuple[list[int], list[int]]:
    """The kinds and slots of a plan."""
    plan = plan_of(trace, path)
    start = HEADER.size + plan.rows.nbytes
    ops = np.frombuffer(path.read_bytes()[start:], OP, int(plan.rows["op_count"].sum()))
    return (ops["what"] & 0xFF).tolist(), ops["slot"].tolist()


def test_blocks_that_realloc_moved(traced: Path, tmp_path: Path) -> None:
    """They are resized, by whom and when they were; but not where that seems to come before their birth."""
    moves = [(Op.TAKE, 0, MAIN, 8, 0), (Op.TAKE, 1, OTHER, 64, 0), (Op.FREE, 0, OTHER, MOVED, 0)]
    moves += [(Op.TAKE, 2, MAIN, 99, 0), (Op.FREE, 1, MAIN, MOVED, 0), (Op.FREE, 2, OTHER, 0, 0)]
    kinds = [Op.TAKE, FROM, Op.RESIZE, FROM, Op.RESIZE, Op.FREE]
    for at_once in 6, 5, 3:  # a move lies in one part
        found = ops_of(trace_of(*moves, at_once=at_once), tmp_path / "plan")
        assert found == (kinds, [0, 1, 2, 0, 1, 2]), at_once
    early = [(Op.TAKE, 0, OTHER, 64, 0), (Op.TAKE, 1, MAIN, 8, 0), (Op.FREE, 1, OTHER, MOVED, 0)]
    assert ops_of(trace_of(*early), tmp_path / "plan")[0] == [Op.TAKE, Op.TAKE, Op.FREE]
    events = whole(read(traced)).events
    assert np.diff(events.sizes[np.flatnonzero(events.sizes == MOVED) - 1]).min() > 0  # one block grows


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_a_plan_that_is_made_in_parts(tmp_path: Path, at_once: int) -> None:
    """It is that of the whole."""
    parts, at_one_go = tmp_path / "parts", tmp_path / "whole"
    plans = plan_of(handed(200, at_once), parts), plan_of(handed(200), at_one_go)
    assert parts.read_bytes() == at_one_go.read_bytes()
    assert [plan.events for plan in plans] == 2 * [sum(2 + number % 3 for number in range(1, 200))]


@pytest.mark.parametrize("mode", [replaying.NO_MALLOC, replaying.AT_ONCE, replaying.IN_TIME])
def test_every_event_happens_again(mode: int, lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of each block, though one window has many events of both threads."""
    monkeypatch.setenv("HAKMEM_LIBRARY", str(lib))
    monkeypatch.setenv("HAKMEM_HARDEN", "1")  # a double free would be noticed
    with replayer(handed(3000), How(idle_s=0.0)) as replays:
        plan = replays.plan
        assert len(plan.rows) == 2
        for one in (Contender("hakmem", lib), Contender("glibc")):
            raw = replays.raw(one, mode)
            assert (raw.left, len(raw.curve)) == (0, len(plan.starts_ns))


@pytest.mark.long("3 seconds; replays on two mallocs, twice each")
def test_compared(traced: Path, tool: Tool) -> None:
    """The peak of what was live is there."""
    options = ("--with", "glibc", "--rounds", "2", "--idle", "1ms", "--fast")
    told = tool.json("replay", traced, *options)
    assert list(told["mallocs"]) == ["hakmem", "glibc"]
    assert all(len(one["rounds"]) == 2 for one in told["mallocs"].values())
    assert all(HANDED_BYTES < one["peak_bytes"] < 2 * HANDED_BYTES for one in told["mallocs"].values())
    assert abs(told["error"]["remote_frees"]) < 0.1
    shown = tool("replay", traced, *options)
    assert "×" in shown.stdout
    assert all(part in shown.stdout for part in ("remote frees ", "(goal: 5 %)\n", " late on average"))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nosuch", "'nosuch' is not known: give the path of its library, or one of hakmem, glibc"),
        ("/no/lib.so", "/no/lib.so: no such file"),
        ("/bin/true", "/bin/true cannot be preloaded"),
        ("/etc/passwd", "/etc/passwd: /etc/passwd is not a library"),
    ],
)
def test_a_malloc_that_cannot_take_part(word: str, said: str, tool: Tool, traced: Path) -> None:
    """An error before the first replay, though others could take part."""
    ended = tool("replay", traced, "--with", f"glibc,{word}")
    assert (ended.status, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended.stderr
    assert said in ended.stderr


@pytest.mark.long("a second of processor time")
def test_a_malloc_that_fails_while_it_replays(traced: Path, tool: Tool, compiled: Compile) -> None:
    """The others go on, and the exit status says that one is missing."""
    library = compiled("refuses", "-shared", "-fPIC")
    ended = tool("replay", traced, "--with", f"glibc,{library}", "--rounds", "1", "--idle", "1ms", "--fast")
    assert ended.status == 1
    assert f"{library.name} did not replay it" in ended.stderr
    assert "glibc" in ended.stdout


def test_mallocs_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, lib: Path) -> None:
    """Those of the default list are left out with a note."""
    monkeypatch.setenv("HAKMEM_LIBRARY", str(lib))
    monkeypatch.setattr(contenders, "PEERS", {name: ("no such file",) for name in contenders.PEERS})
    chosen, missing = chosen_of([*DEFAULT_WITH], is_default=True)
    assert [one.name for one in chosen] == ["hakmem", "glibc"]
    assert [note.split(" ")[0] for note in missing] == ["jemalloc", "mimalloc", "tcmalloc"]


@pytest.mark.long("a second of processor time")
def test_a_file_that_was_cut_off(traced: Path, tmp_path: Path, tool: Tool) -> None:
    path = tmp_path / "cut.hkt"
    path.write_bytes(traced.read_bytes()[:-50])
    ended = tool("replay", path, "--with", "hakmem", "--rounds", "1", "--idle", "1ms", "--fast")
    assert ended.status == 0, ended.stderr
    assert "the file was cut off" in ended.stderr
    head = traced.read_bytes().split(b"\n")[0]
    for data, said in (head, "no events to replay"), (SAMPLED, "sampled lives only"):
        path.write_bytes(data)
        ended = tool("replay", path, "--with", "settings")
        assert (ended.status, ended.stderr.count("\n")) == (1, 1)
        assert said in ended.stderr


def test_its_own_error(traced: Path, tmp_path: Path) -> None:
    """A process that had 1 MiB more at its beginning, and grew as the replay did; then by a tenth more."""
    trace = read(traced)
    plan = plan_of(trace, tmp_path / "plan")
    curve = [10e6] * len(plan.starts_ns)
    result = Result(Contender("hakmem"), [Round(1.0, 30e6, 20e6, 10e6, 100, curve)])
    times = (trace.extent.first_ns + np.linspace(0, plan.end_ns, 5)).astype(np.int64)
    trace.memory = None
    assert fidelity(trace, plan, result) is None
    for more in (1.0, 1.1):
        seen = np.array([11e6, 31e6 * more, 31e6 * more, 11e6, 11e6])
        seen = seen.astype(np.int64)
        nothing = np.zeros(len(seen), np.int64)
        trace.memory = Memory(times, seen, seen, nothing, nothing)
        error = fidelity(trace, plan, result)
        assert error is not None
        assert (error.peak, error.mean) == pytest.approx((1 / more - 1, 11e6 / seen[:4].mean() - 1), abs=1e-6)


def test_blocks_that_are_written_in_part(lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded memory tells how much of each block was written, if that is much less than all."""
    monkeypatch.setenv("HAKMEM_LIBRARY", str(lib))
    hakmem = Contender("hakmem", lib)
    trace = trace_of(*((Op.TAKE, number, MAIN, 3 << 20, 0) for number in range(20)))
    with replayer(trace, How(0.001, False)) as replays:
        for written, share in (1 << 16, 1), (1 << 21, 1), (replaying.ALL_BYTES, 0.9):
            replays.how = How(0.001, False, written)
            seen = share * replays.raw(hakmem, replaying.AT_ONCE).curve[1:]
            trace.memory = Memory(replays.plan.starts_ns[1:], seen, *np.zeros((3, len(seen))))
            replays.how = How(0.001, False)
            fit_written(trace, replays, hakmem)
            assert replays.how.written_bytes == written


@pytest.mark.long("2 seconds of replays")
def test_settings(traced: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each beside hakmem's two, and one for each malloc that is asked for, too; two rounds of all
    whatever the time, and no more."""
    monkeypatch.setattr(contenders, "SETTINGS", {"HAKMEM_DECAY_MS": ("0", "300")})
    options = ("--fast", "--idle", "1ms", "--for", "1s", "--with")
    told = tool.json("replay", traced, *options, "settings,glibc")["mallocs"]
    rows = ["hakmem", "hakmem again", "HAKMEM_DECAY_MS=0", "HAKMEM_DECAY_MS=300", "glibc"]
    assert list(told) == rows
    assert {len(one["rounds"]) for one in told.values()} == {2}
    ended = tool("replay", traced, *options, "settings")
    assert "5 rounds of hakmem, and hakmem with 2 settings: about " in ended.stderr
    assert "glibc" not in ended.stdout


def test_rounds_that_do_not_fit(traced: Path, tool: Tool) -> None:
    """Two are the least, or as many as were asked for."""
    for options, rounds in ((), "2 rounds"), (("--rounds", "1"), "1 round"):
        ended = tool("replay", traced, "--with", "hakmem", "--idle", "1h", "--for", "9m", *options)
        assert (ended.status, ended.stdout) == (1, "")
        assert re.search(f"{rounds} of hakmem: about . h.*, more than --for 9 min", ended.stderr)


@pytest.mark.parametrize(
    "rows",
    [
        [(Op.TAKE, 0, MAIN, 8, 0), (Op.FREE, 0, MAIN, 0, 0), (Op.FREE, 0, MAIN, 0, 0)],
        [(Op.TAKE, 0, MAIN, 8, 0), (Op.FREE, 0, MAIN, 0, 0), (Op.RESIZE, 0, MAIN, 9, 0)],
        [(Op.TAKE, 0, MAIN, 1 << 60, 0)],
    ],
)
@pytest.mark.parametrize("at_once", [1, 100])
def test_a_trace_that_contradicts_itself(
    rows: list[tuple[Op, int, int, int, int]], at_once: int, tmp_path: Path
) -> None:
    with pytest.raises(HakmemError, match="contradicts itself"):
        plan_of(trace_of(*rows, at_once=at_once), tmp_path / "plan")


def test_a_plan_that_is_not_whole(lib: Path, tmp_path: Path) -> None:
    """One sentence and status 2, for a file cut anywhere and for events that lead out of its tables."""
    path = tmp_path / "plan"
    plan = plan_of(handed(50), path)
    whole = path.read_bytes()
    wrong = [whole[:length] for length in (0, 10, HEADER.size, len(whole) // 2, len(whole) - 1)]
    end = HEADER.size + plan.rows.nbytes + OP.itemsize * int(plan.rows["op_count"].sum())  # of operations
    for place, data in (end - 5, b"\xff" * 5), (end - 16, b"\xff"), (0, b"x"):
        wrong += [whole[:place] + data + whole[place + len(data) :]]
    for data in wrong:
        path.write_bytes(data)
        step = captured([lib.with_name("hakmem-replay"), path, "1", "0", "64"])
        assert (step.returncode, step.stderr.count("\n")) == (2, 1), step.stderr
        assert "plan" in step.stderr
