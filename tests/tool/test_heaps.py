"""Heaps that a program has made: their figures in stat, why, what, leaks, export and record."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hakmem.base.errors import HakmemError
from hakmem.base.validity import built
from hakmem.census.figures import Snapshot
from hakmem.census.heap_figures import NamedHeapFigures, limits_of_heaps, quoted
from hakmem.census.reading import read_quick
from hakmem.census.snapshot import open_process, take
from hakmem.layout.named_heaps import text_of
from hakmem.target.fleet import Fleet
from hakmem.views.metrics import HakmemCollector
from hakmem.views.metrics_families import Families
from hakmem.views.metrics_heaps import OTHERS, SERIES_KEPT_MAX, HeapMetrics
from hakmem.views.metrics_rows import Grouping
from hakmem.views.recording import HEAPS_KEPT, Recording
from results import Compile
from tool.conftest import Start, Stepper, Tool
from tool.dumps import dumped, needs_gcore
from tool.recordings import write

MIB = 1 << 20
# What programs/heaps.c makes: 112 is the class of 100 bytes; 200,000 bytes are four granules less a page.
SMALL_BYTES, RANGE_BYTES = 112, (4 << 16) - 4096
CACHE_BLOCKS, CACHE_BYTES = 999 + 5, 999 * SMALL_BYTES + 5 * RANGE_BYTES
CACHE_PEAK_BYTES = CACHE_BYTES + SMALL_BYTES
ODD_NAME, ODD_TEXT = (
    "ses\nsions\N{REPLACEMENT CHARACTER}",
    "“ses\N{REPLACEMENT CHARACTER}sions\N{REPLACEMENT CHARACTER}”",
)
MODES: dict[str, dict[str, str]] = {"plain": {}, "hardened": {"HAKMEM_HARDEN": "1"}}


def told(program: Stepper) -> list[str]:
    """The addresses that it tells."""
    program.go_on()
    assert program.process.stdout is not None
    addresses = program.process.stdout.readline().split()
    program.wait_for("told")
    return addresses


def heaps_of(snapshot: Snapshot) -> dict[str, NamedHeapFigures]:
    return {heap.name: heap for heap in snapshot.heaps}


def check_figures(heaps: dict[str, NamedHeapFigures], pid: int) -> None:
    """What heaps.c has made until "made"."""
    cache, odd, empty, main = (heaps[name] for name in ("cache", ODD_NAME, "heap 3", "main loop"))
    assert (cache.live_bytes, cache.live_blocks, cache.peak_bytes) == (
        CACHE_BYTES,
        CACHE_BLOCKS,
        CACHE_PEAK_BYTES,
    )
    assert (cache.tag, cache.kind, cache.limit_bytes, cache.refusals) == (7, "program", None, 0)
    assert cache.allocated_blocks == CACHE_BLOCKS + 1
    assert (odd.live_bytes, odd.limit_bytes, odd.peak_bytes) == (MIB, MIB, MIB)
    assert (odd.live_blocks, odd.refusals) == (256, 3)
    assert (empty.live_bytes, empty.live_blocks, empty.allocated_blocks) == (0, 0, 1)
    assert (main.kind, main.tag, main.live_blocks, main.limit_bytes) == ("thread", 42, None, None)
    assert main.thread_id == pid
    assert main.live_bytes >= 48


@pytest.mark.parametrize("mode", MODES)
def test_figures_are_exact_and_all_blocks_are_counted(with_heaps: Start, mode: str) -> None:
    program = with_heaps(**MODES[mode])
    target = open_process(program.pid)
    full, quick = take(target), take(target, "counters")
    for snapshot in (full, quick):
        check_figures(heaps_of(snapshot), program.pid)
    assert [heap.name for heap in full.heaps[:2]] == ["cache", ODD_NAME]  # the most live bytes first
    # Ranges of heaps are Big blocks, whatever their size; blocks of their slabs are live, and in no cache.
    assert full.big.blocks == 5
    by_size = {item.block_bytes: item for item in full.classes}
    assert by_size[SMALL_BYTES].live_blocks == 999
    assert by_size[4096].live_blocks == 256
    assert full.memory.live_bytes >= CACHE_BYTES + MIB
    assert quick.memory.live_bytes == full.memory.live_bytes
    assert [thread.heap_name for thread in full.threads if thread.thread_id == program.pid] == ["main loop"]
    assert built(Snapshot, json.loads(json.dumps(asdict(full)))).heaps == full.heaps


def test_a_stripped_static_program(compiled: Compile, stepper: Start, static_lib: Path) -> None:
    program = stepper([compiled("heaps", "-static", "-s", static_lib)], "begun", preload=False)
    program.go_on("made")
    check_figures(heaps_of(take(open_process(program.pid))), program.pid)


def test_counters_do_not_fall_with_a_heap(with_heaps: Start) -> None:
    program = with_heaps()
    target = open_process(program.pid)
    before = take(target)
    told(program)
    program.go_on("again")
    after = take(target)
    assert {name for name in before.counters if after.counters[name] < before.counters[name]} == set()
    cache = heaps_of(after)["cache"]
    assert (cache.live_bytes, cache.live_blocks, cache.tag, cache.allocated_blocks) == (SMALL_BYTES, 1, 0, 1)


def test_figures_of_a_heap_in_which_threads_meet_are_of_all(
    compiled: Compile, stepper: Start, lib: Path
) -> None:
    built = compiled("heap_of_threads", lib, f"-Wl,-rpath,{lib.parent}", "-pthread")
    target = open_process(stepper([built], "made", preload=False).pid)
    assert len(read_quick(target).named.lane_rows)  # else they have not met
    [heap], [quick] = take(target).heaps, take(target, "counters").heaps
    assert (heap.name, heap.live_blocks, heap.live_bytes) == ("shared", 800, 800 * SMALL_BYTES)
    assert heap.allocated_blocks == quick.allocated_blocks == 4_000_000
    assert quick.live_blocks == 800 and quick.live_bytes >= heap.live_bytes  # what waits in queues is counted


# ---- as text -------------------------------------------------------------------------------------------


def test_stat_shows_the_largest_and_counts_the_rest(tool: Tool, with_heaps: Start) -> None:
    program = with_heaps(20)
    text = tool("stat", program.pid).stdout
    assert "“cache”" in text
    assert ODD_TEXT in text
    assert "“main loop”" in text
    assert "… and 14 more heaps with" in text
    said = " ".join(text.split())
    assert "holds 1.00 MiB, 100 % of its limit of 1.00 MiB; 3 requests refused." in said
    assert "3 requests failed with ENOMEM, 3 of them by limits of the program's heaps" in said
    everything = tool("stat", program.pid, "--all").stdout
    assert "“request 19”" in everything
    assert "more heap" not in everything


def test_why_says_which_heap_holds_what(tool: Tool, with_heaps: Start) -> None:
    program = with_heaps()
    answer = json.loads(tool("why", program.pid, "--json").stdout)
    live = CACHE_BYTES / (CACHE_BYTES + MIB)
    cache, odd = answer["heaps"][:2]
    assert (cache["name"], cache["tag"], cache["live_bytes"]) == ("cache", 7, CACHE_BYTES)
    assert cache["live_share"] == pytest.approx(live, abs=0.02)
    assert cache["resident_bytes"] == pytest.approx(5 * 200_000 + 999 * SMALL_BYTES, rel=0.15)
    assert odd["resident_bytes"] < MIB / 4  # nobody has touched its blocks
    assert [heap["name"] for heap in answer["heaps"]] == ["cache", ODD_NAME, "heap 3"]
    text = " ".join(tool("why", program.pid).stdout.split())
    assert f"Heaps: Live bytes lie {round(100 * live)} % in “cache” (tag 7)" in text
    assert f"Heap {ODD_TEXT} holds 1.00 MiB, 100 % of its limit of 1.00 MiB; 3 requests refused." in text


def test_what_says_which_heap_a_block_is_in(tool: Tool, with_heaps: Start) -> None:
    program = with_heaps()
    live, freed, big, of_thread = told(program)
    cache = {"number": 1, "name": "cache", "tag": 7}
    for address, state in ((live, "live"), (freed, "free"), (big, "live")):
        answer = json.loads(tool("what", program.pid, address, "--json").stdout)
        assert (answer["heap"], answer["state"], answer["owner"]) == (cache, state, None), address
    assert answer["tier"] == "big"
    assert RANGE_BYTES <= answer["block_bytes"] <= RANGE_BYTES + 4096
    answer = json.loads(tool("what", program.pid, of_thread, "--json").stdout)
    assert (answer["heap"], answer["owner"]["heap_name"]) == (None, "main loop")
    assert "heap “cache” (tag 7), made by the program" in tool("what", program.pid, live).stdout
    assert "heap 1 “main loop”, thread" in tool("what", program.pid, of_thread).stdout


def test_leaks_finds_blocks_of_heaps_that_nothing_points_to(tool: Tool, with_heaps: Start) -> None:
    """heaps.c forgets those of the heap with a limit, and keeps the other ones'."""
    program = with_heaps()
    answer = json.loads(tool("leaks", program.pid, "--for", "0s", "--freeze", "--json").stdout)
    assert 250 <= answer["definite"]["blocks"] <= 260
    assert answer["definite"]["bytes"] <= MIB + 4096


@needs_gcore
def test_a_core_has_them_too(tool: Tool, with_heaps: Start, tmp_path: Path) -> None:
    program = with_heaps()
    stat = json.loads(tool("stat", program.pid, "--json").stdout)
    core = dumped(program.pid, tmp_path)
    found = json.loads(tool("stat", core, "--json").stdout)
    assert found["heaps"] == stat["heaps"]
    why = json.loads(tool("why", core, "--json").stdout)
    assert [heap["name"] for heap in why["heaps"]] == ["cache", ODD_NAME, "heap 3"]


# ---- without a process -----------------------------------------------------------------------------------


def heap(name: str, live_bytes: int = 0, **more: Any) -> NamedHeapFigures:  # noqa: ANN401 - its figures
    figures = {"number": 1, "tag": 0, "kind": "program", "thread_id": 0, "live_blocks": 1, "peak_bytes": 0}
    return NamedHeapFigures(
        **{**figures, "allocated_blocks": 0, "name": name, "live_bytes": live_bytes, **more}
    )


def test_names_are_shown_on_one_line() -> None:
    assert text_of(b"caf\xc3\xa9\0rest") == "café"
    assert text_of(b"x" * 30 + b"\xc3") == "x" * 30  # cut in the middle of a character
    assert text_of(b"\xff\x01") == "\N{REPLACEMENT CHARACTER}\x01"
    assert quoted("a\nb\u202ec") == "“a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c”"


def test_limits_that_are_close_are_told() -> None:
    assert limits_of_heaps([heap("a", 90, limit_bytes=100), heap("b", 500)]) == []
    (close,) = limits_of_heaps([heap("a", 91, limit_bytes=100)])
    assert "Heap “a” holds 91 B, 91 % of its limit of 100 B." in close
    (refused,) = limits_of_heaps([heap("a", 1, limit_bytes=100, refusals=2)])
    assert "; 2 requests refused." in refused
    (before,) = limits_of_heaps([heap("a", 1, refusals=1)])
    assert "1 request refused by a limit that it had" in before
    notes = limits_of_heaps([heap(f"h{number}", 1, refusals=1) for number in range(12)])
    assert len(notes) == 11
    assert notes[-1] == "2 more heaps close to a limit, or with refused requests."


class Machine:
    """Answers of an exporter about one process's heaps."""

    def __init__(self, heaps_shown: int = 20) -> None:
        self.metrics = HeapMetrics(heaps_shown)
        self.target: Any = SimpleNamespace(pid=1)

    def scrape(
        self, *heaps: NamedHeapFigures, row: tuple[str, ...] = ("1", "p")
    ) -> dict[str, dict[str, float]]:
        """{metric: {name of the heap: value}}"""
        snapshot: Any = SimpleNamespace(heaps=list(heaps))
        families = Families()
        self.metrics.forget([self.target])
        self.metrics.choose([(self.target, snapshot)], {1: row}, ("(others)",) * 2)
        self.metrics.add(families, self.target, snapshot, ("1", "p"), row)
        return {
            one.name.removeprefix("hakmem_heap_"): {
                s.labels["heap"]: s.value for s in one.samples if s.name != "_"
            }
            for one in families.all()
        }


def test_heaps_of_one_name_are_one_series() -> None:
    found = Machine().scrape(
        heap("a", 60, number=1, limit_bytes=100, peak_bytes=70, refusals=1, allocated_blocks=5),
        heap("a", 30, number=2, limit_bytes=40, peak_bytes=90, refusals=2, allocated_blocks=6),
        heap("b", 1, number=3, allocated_blocks=7),
    )
    assert found["live_bytes"] == {"a": 90, "b": 1}
    assert found["live_blocks"] == {"a": 2, "b": 1}
    assert found["peak_bytes"] == {"a": 90, "b": 0}
    assert found["limit_bytes"] == {"a": 40}
    assert found["limit_used_ratio"] == {"a": 0.75}
    assert found["refusals"] == {"a": 3, "b": 0}
    assert found["allocations"] == {"a": 11, "b": 7}


def test_the_largest_have_series_and_sums_are_the_same() -> None:
    machine = Machine(2)
    heaps = [heap(f"h{number}", number, number=number, allocated_blocks=10) for number in range(1, 6)]
    found = machine.scrape(*heaps)
    assert found["live_bytes"] == {"h5": 5, "h4": 4, OTHERS[0]: 6}
    assert found["allocations"] == {"h5": 10, "h4": 10, OTHERS[0]: 30}
    assert machine.scrape(*heaps, row=("(others)",) * 2)["live_bytes"] == {OTHERS[0]: 15}
    assert Machine(0).scrape(*heaps) == {}


def test_counters_of_a_series_never_fall() -> None:
    machine = Machine(1)
    machine.scrape(heap("a", 9, number=1, allocated_blocks=100), heap("b", 1, number=2, allocated_blocks=50))
    # One ends and another takes its record; the other one becomes the largest.
    found = machine.scrape(
        heap("a", 1, number=1, allocated_blocks=3), heap("b", 9, number=2, allocated_blocks=51)
    )
    assert found["allocations"] == {"b": 1, OTHERS[0]: 53}
    found = machine.scrape(heap("a", 9, number=1, allocated_blocks=4))
    assert found["allocations"] == {"a": 101}


def test_counters_outlast_a_reading_that_failed(with_heaps: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    targets, collector = [open_process(with_heaps().pid)], HakmemCollector("counters")
    monkeypatch.setattr(Fleet, "targets", lambda _self: targets)
    collector.collect()
    (counted,) = collector._heaps._counted.values()
    monkeypatch.setattr("hakmem.views.metrics.take", Mock(side_effect=HakmemError))
    collector.collect()
    assert list(collector._heaps._counted.values()) == [counted]
    targets.clear()
    collector.collect()
    assert collector._heaps._counted == {}


def test_what_series_have_counted_is_bounded() -> None:
    machine = Machine(1)
    for number in range(SERIES_KEPT_MAX + 10):
        machine.scrape(heap(f"h{number}", 1, number=1, allocated_blocks=number + 1))
    (counted,) = machine.metrics._counted.values()
    assert len(counted.totals) == SERIES_KEPT_MAX


def test_series_of_a_process(with_heaps: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    program = with_heaps(30)
    targets = [open_process(program.pid)]
    monkeypatch.setattr(Fleet, "targets", lambda _self: targets)
    command = Path(f"/proc/{program.pid}/comm").read_text().strip()
    for grouping in (Grouping(shown=3), Grouping("command", shown=3)):
        collector = HakmemCollector("counters", grouping=grouping)
        found = {family.name: family for family in collector.collect()}
        wanted = {"command": command} | ({"pid": str(program.pid)} if grouping.is_plain else {})
        values, refused = (
            {s.labels["heap"]: s.value for s in found[name].samples if wanted.items() <= s.labels.items()}
            for name in ("hakmem_heap_live_bytes", "hakmem_heap_refusals")
        )
        assert set(values) == {"cache", ODD_NAME, "main loop", OTHERS[0]}
        assert values["cache"] == CACHE_BYTES
        assert values[OTHERS[0]] == 30 * 48
        assert refused[ODD_NAME] == 3


def test_recordings_are_bounded(with_heaps: Start, tool: Tool, tmp_path: Path) -> None:
    target = open_process(with_heaps(40).pid)
    recording, path = Recording.of(target, 1.0), tmp_path / "run.json"
    recording.samples = [take(target), take(target)]
    write(recording, path)
    written = Recording.read(path).samples[0].heaps
    assert len(written) == HEAPS_KEPT
    assert sum(one.live_bytes for one in written) == sum(one.live_bytes for one in recording.samples[0].heaps)
    assert tool("record", path, "-o", tmp_path / "report.html").status == 0
