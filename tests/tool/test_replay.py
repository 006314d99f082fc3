"""hakmem replay: each event of a trace happens again, on any malloc; and plans that are not whole."""

from pathlib import Path

import numpy as np
import pytest
from hakmem.base.errors import HakmemError
from hakmem.commands.replay import chosen_of
from hakmem.launch import contenders, replaying
from hakmem.launch.contenders import Contender
from hakmem.launch.replaying import How, Result, Round, fidelity, fit_written, replayer
from hakmem.launch.tuning import Goal, Ratios, advice_of
from hakmem.trace.file import read
from hakmem.trace.lives import Lives
from hakmem.trace.memory import Memory
from hakmem.trace.plan import HEADER, Plan, plan_of
from hakmem.trace.words import MOVED, Events, Op
from hakmem.views.replay_text import advice_text
from results import Compile, captured
from tool.conftest import Tool

HANDED_BYTES = 20_000 * 3000  # as programs/traced.c has them
MAIN, OTHER = 7, 8
SAMPLED = b'{"hakmem_trace":1,"sampled":true}\n'


def lives(*rows: tuple[Op, int, int, int, int]) -> Lives:
    """(op, number of its block, thread, size, log2 of its alignment), a microsecond apart."""
    ops, numbers, threads, sizes, alignments = (np.array(column) for column in zip(*rows, strict=True))
    events = Events(ops.astype(np.int8), numbers.astype(np.uint64), sizes.astype(np.uint64),
                    alignments.astype(np.uint8), threads, 1000 * np.arange(len(rows)))  # fmt: skip
    return Lives.numbered(events, numbers, 0, 0, 0)


def handed(count: int) -> Plan:
    """One thread allocates, another resizes and frees; one of 16 is aligned to 4 KiB, one of 500 large."""
    rows = [(Op.LIVE, 0, 0, 4 << 20, 0)]
    for number in range(1, count):
        size = 1 << (number % 11 if number % 500 else 20)
        rows += [(Op.TAKE, number, MAIN, size, 12 if number % 16 == 0 else 0)]
        rows += [(Op.RESIZE, number, OTHER, 2 * size, 0)] * (number % 3) + [(Op.FREE, number, OTHER, 0, 0)]
    return plan_of(lives(*rows), MAIN)


def test_blocks_that_realloc_moved(traced: Path) -> None:
    """They are resized, by whom and when they were; but not where that seems to come before their birth."""
    moves = [(Op.TAKE, 0, MAIN, 8, 0), (Op.TAKE, 1, OTHER, 64, 0), (Op.FREE, 0, OTHER, MOVED, 0)]
    moves += [(Op.TAKE, 2, MAIN, 99, 0), (Op.FREE, 1, MAIN, MOVED, 0), (Op.FREE, 2, OTHER, 0, 0)]
    ops = plan_of(lives(*moves), MAIN).ops
    assert (ops["what"] & 0xFF).tolist() == [Op.TAKE, Op.RESIZE, Op.RESIZE, Op.FREE]
    assert ops["slot"].tolist() == [0, 2, 1, 2]
    early = [(Op.TAKE, 0, OTHER, 64, 0), (Op.TAKE, 1, MAIN, 8, 0), (Op.FREE, 1, OTHER, MOVED, 0)]
    assert (plan_of(lives(*early), MAIN).ops["what"] & 0xFF).tolist() == [Op.TAKE, Op.TAKE, Op.FREE]
    events = read(traced).lives.events
    assert np.diff(events.sizes[np.flatnonzero(events.sizes == MOVED) - 1]).min() > 0  # one block grows


@pytest.mark.parametrize("mode", [replaying.NO_MALLOC, replaying.AT_ONCE, replaying.IN_TIME])
def test_every_event_happens_again(mode: int, lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of each block, though one window has many events of both threads."""
    monkeypatch.setenv("HAKMEM_LIBRARY", str(lib))
    plan = handed(3000)
    assert len(plan.rows) == 2
    assert plan.events == sum(2 + number % 3 for number in range(1, 3000))
    monkeypatch.setenv("HAKMEM_HARDEN", "1")  # a double free would be noticed
    with replayer(plan, How(idle_s=0.0)) as replays:
        for one in (Contender("hakmem", lib), Contender("glibc")):
            raw = replays.raw(one, mode)
            assert (raw.left, len(raw.curve)) == (0, len(plan.starts_ns))


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
    assert all(part in shown.stdout for part in ("remote frees ", "(goal: 5 %)\n", " late in the mean"))


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
    chosen, missing = chosen_of(None)
    assert [one.name for one in chosen] == ["hakmem", "glibc"]
    assert [note.split(" ")[0] for note in missing] == ["jemalloc", "mimalloc", "tcmalloc"]


def test_a_file_that_was_cut_off(traced: Path, tmp_path: Path, tool: Tool) -> None:
    path = tmp_path / "cut.hkt"
    path.write_bytes(traced.read_bytes()[:-50])
    ended = tool("replay", path, "--with", "hakmem", "--rounds", "1", "--idle", "1ms", "--fast")
    assert ended.status == 0, ended.stderr
    assert "the file was cut off" in ended.stderr
    head = traced.read_bytes().split(b"\n")[0]
    for data, said in (head, "no events to replay"), (SAMPLED, "sampled lives only"):
        path.write_bytes(data)
        ended = tool("tune", path)
        assert (ended.status, ended.stderr.count("\n")) == (1, 1)
        assert said in ended.stderr


def test_its_own_error(traced: Path) -> None:
    """A process that had 1 MiB more at its beginning, and grew as the replay did; then by a tenth more."""
    trace = read(traced)
    plan = plan_of(trace.lives, trace.head["pid"])
    curve = [10e6] * len(plan.starts_ns)
    result = Result(Contender("hakmem"), [Round(1.0, 30e6, 20e6, 10e6, 100, curve)])
    times = trace.lives.events.times_ns[0] + np.linspace(0, plan.end_ns, 5)
    trace.memory = None
    assert fidelity(trace, plan, result) is None
    for more in (1.0, 1.1):
        seen = np.array([11e6, 31e6 * more, 31e6 * more, 11e6, 11e6])
        trace.memory = Memory.joined([{"times_ns": times, "anonymous_bytes": seen, "committed_bytes": seen}])
        error = fidelity(trace, plan, result)
        assert error is not None
        assert (error.peak, error.mean) == pytest.approx((1 / more - 1, 11e6 / seen[:4].mean() - 1), abs=1e-6)


def test_blocks_that_are_written_in_part(traced: Path, lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded memory tells how much of each block was written, if that is much less than all."""
    monkeypatch.setenv("HAKMEM_LIBRARY", str(lib))
    trace, hakmem = read(traced), Contender("hakmem", lib)
    trace.lives = lives(*((Op.TAKE, number, MAIN, 3 << 20, 0) for number in range(20)))
    with replayer(plan_of(trace.lives, MAIN), How(0.001, False)) as replays:
        for written, share in (1 << 16, 1), (1 << 21, 1), (replaying.ALL_BYTES, 0.9):
            replays.how = How(0.001, False, written)
            seen = share * replays.raw(hakmem, replaying.AT_ONCE).curve[1:]
            trace.memory = Memory(replays.plan.starts_ns[1:], seen, *np.zeros((3, len(seen))))
            replays.how = How(0.001, False)
            fit_written(trace, replays, hakmem)
            assert replays.how.written_bytes == written


@pytest.mark.long("4 seconds of replays")
def test_tuned(traced: Path, tool: Tool) -> None:
    """One line: a setting with both gains, or that nothing helps."""
    ended = tool("tune", traced, "--fast", "--for", "rss", "--rounds", "5")
    assert ended.status == 0, ended.stderr
    assert ended.stdout.count("\n") == 1
    assert ended.stdout.startswith(("HAKMEM_", "nothing helps"))


@pytest.mark.parametrize(
    ("rss", "time", "goal", "helps"),
    [
        ([0.90, 0.91, 0.92], [1.0, 1.0, 1.0], Goal.RSS, True),
        ([0.90, 0.91, 1.01], [1.0, 1.0, 1.0], Goal.RSS, False),  # not in each round
        ([0.99, 0.99, 0.98], [1.0, 1.0, 1.0], Goal.RSS, False),  # too little
        ([0.50, 0.50, 0.50], [1.6, 1.6, 1.6], Goal.RSS, False),  # at the price of time
        ([0.90, 0.90, 0.90], [1.0, 0.9, 1.0], Goal.BOTH, True),
        ([1.00, 1.01, 1.02], [0.9, 0.9, 0.8], Goal.TIME, True),
    ],
)
def test_advice(rss: list[float], time: list[float], goal: Goal, helps: bool) -> None:
    advice = advice_of({"HAKMEM_THP": "0"}, 0.1, Ratios(np.array(rss), np.array(time), np.array(rss)), goal)
    assert advice.helps == helps
    assert Ratios(np.array(rss), np.array(time), np.array(rss)).score(goal) < 1 or not helps
    assert advice.interval[0] <= advice.gain <= advice.interval[1]
    assert advice_text(advice, goal).startswith(
        "HAKMEM_THP=0 " if helps else "nothing helps; the best was HAKMEM"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [(Op.TAKE, 0, MAIN, 8, 0), (Op.FREE, 0, MAIN, 0, 0), (Op.FREE, 0, MAIN, 0, 0)],
        [(Op.TAKE, 0, MAIN, 8, 0), (Op.FREE, 0, MAIN, 0, 0), (Op.RESIZE, 0, MAIN, 9, 0)],
        [(Op.TAKE, 0, MAIN, 1 << 60, 0)],
    ],
)
def test_a_trace_that_contradicts_itself(rows: list[tuple[Op, int, int, int, int]]) -> None:
    with pytest.raises(HakmemError, match="contradicts itself"):
        plan_of(lives(*rows), MAIN)


def test_a_plan_that_is_not_whole(lib: Path, tmp_path: Path) -> None:
    """One sentence and status 2, for a file cut anywhere and for events that lead out of its tables."""
    path = tmp_path / "plan"
    handed(50).write(path)
    whole = path.read_bytes()
    wrong = [whole[:length] for length in (0, 10, HEADER.size, len(whole) // 2, len(whole) - 1)]
    wrong += [whole[:-5] + b"\xff" * 5, whole[:-16] + b"\xff" + whole[-15:], b"x" + whole[1:]]
    for data in wrong:
        path.write_bytes(data)
        step = captured([lib.with_name("hakmem-replay"), path, "1", "0", "64"])
        assert (step.returncode, step.stderr.count("\n")) == (2, 1), step.stderr
        assert "plan" in step.stderr
