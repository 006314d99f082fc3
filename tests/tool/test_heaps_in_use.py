"""How many threads use a heap (hak_heap_use), in all that shows its figures; and a heap that has the record
of one that ended."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hakmem.census.heap_figures import few_heaps
from hakmem.census.rates import heap_rates
from hakmem.census.snapshot import open_process, take
from hakmem.target.fleet import Fleet
from hakmem.views.heap_rows import HEAP_COLUMNS, heap_row
from hakmem.views.metrics import HakmemCollector
from hakmem.views.recording import Recording
from hakmem.views.report_heaps import heap_charts
from results import Compile
from tool.conftest import Start, Stepper, Tool
from tool.recordings import write
from tool.test_heaps import Machine, heap, heaps_of

USERS, BLOCKS, MORE_BLOCKS = 3, 10, 25  # of programs/heaps_in_use.c


@pytest.fixture
def in_use(compiled: Compile, stepper: Start, lib: Path) -> Start:
    """in_use(*arguments): programs/heaps_in_use.c while its threads use a heap."""
    program = compiled("heaps_in_use", lib, f"-Wl,-rpath,{lib.parent}", "-pthread")
    return lambda *arguments: stepper([program, *arguments], "used", preload=False)


def threads_of(program: Stepper) -> dict[str, int | None]:
    snapshots = [take(open_process(program.pid), detail) for detail in ("full", "counters")]
    full, quick = ({one.name: one.threads for one in snapshot.heaps} for snapshot in snapshots)
    assert full == quick
    return full


def test_threads_are_counted_as_long_as_they_use_it(in_use: Start) -> None:
    program = in_use()
    assert threads_of(program) == {"tenant": USERS, "quiet": 0, "main loop": None}
    program.go_on("left")
    assert threads_of(program) == {"tenant": 0, "quiet": 0, "main loop": None}


def test_stat_and_why_tell_them(tool: Tool, in_use: Start) -> None:
    program = in_use()
    stat = json.loads(tool("stat", program.pid, "--json").stdout)
    assert {one["name"]: one["threads"] for one in stat["heaps"]} == {
        "tenant": USERS,
        "quiet": 0,
        "main loop": None,
    }
    lines = tool("stat", program.pid).stdout.splitlines()
    (head,) = (line for line in lines if " refused " in line and " threads " in line)
    (tenant,) = (line for line in lines if "“tenant”" in line)
    assert tenant[: head.index(" threads ") + len(" threads")].endswith(f" {USERS}")
    why = json.loads(tool("why", program.pid, "--json").stdout)
    assert {one["name"]: one["threads"] for one in why["heaps"]} == {"tenant": USERS, "quiet": 0}
    text = " ".join(tool("why", program.pid).stdout.split())
    assert f" % in “tenant” (in use by {USERS} threads)" in text


def test_export_tells_them(in_use: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [open_process(in_use().pid)]
    monkeypatch.setattr(Fleet, "targets", lambda _self: targets)
    found = {family.name: family for family in HakmemCollector("counters").collect()}
    samples = found["hakmem_heap_threads"].samples
    assert {one.labels["heap"]: one.value for one in samples} == {"tenant": USERS, "quiet": 0}


def test_the_librarys_own_reports_tell_them(in_use: Start, tmp_path: Path) -> None:
    text, as_json = tmp_path / "report", tmp_path / "report.json"
    in_use(text, as_json)
    found = {one["name"]: one["threads"] for one in json.loads(as_json.read_text())["heaps"]}
    assert found == {"tenant": USERS, "quiet": 0, "main loop": 0}
    said = text.read_text()
    head, *rows = (line.split() for line in said[said.index("\nheaps\n") :].splitlines()[2:6])
    place = head.index("threads") - len(head)
    assert {" ".join(row[:-8]): row[place] for row in rows} == {"tenant": "3", "quiet": "0", "main loop": "0"}


def test_recordings_and_their_page_have_them(in_use: Start, tmp_path: Path) -> None:
    program, path = in_use(), tmp_path / "run.json"
    target = open_process(program.pid)
    recording = Recording.of(target, 1.0)
    recording.samples = [take(target)]
    program.go_on("left")
    recording.samples.append(take(target, "counters"))
    write(recording, path)
    samples = Recording.read(path).samples
    held, used = heap_charts([0.0, 1.0], samples)
    assert (held.key, used.key) == ("heaps", "heap-threads")
    assert [(one.name, [*one.values]) for one in used.series] == [("“tenant”", [USERS, 0])]


# ---- a record that is used again -----------------------------------------------------------------------


def test_a_heap_that_has_anothers_record_counts_from_zero(in_use: Start) -> None:
    """Also when it has counted more than the one before."""
    program = in_use()
    target = open_process(program.pid)
    program.go_on("left")
    before = take(target)
    program.go_on("again")
    after = take(target)
    old, new = heaps_of(before)["tenant"], heaps_of(after)["tenant"]
    assert (old.number, old.allocated_blocks) == (new.number, BLOCKS)
    assert new.allocated_blocks == MORE_BLOCKS
    assert old.serial < new.serial
    rates = heap_rates(before, replace(after, monotonic_s=before.monotonic_s + 1), 1.0)
    assert rates[new.number] == MORE_BLOCKS
    assert rates[heaps_of(after)["quiet"].number] == 0


# ---- without a process -----------------------------------------------------------------------------------


def test_a_series_counts_on_with_a_heap_that_has_anothers_record() -> None:
    machine = Machine()
    machine.scrape(heap("a", serial=1, allocated_blocks=100, refusals=5))
    found = machine.scrape(heap("a", serial=2, allocated_blocks=150, refusals=7))
    assert (found["allocations"], found["refusals"]) == ({"a": 250}, {"a": 12})
    found = machine.scrape(heap("a", serial=2, allocated_blocks=151, refusals=7))
    assert (found["allocations"], found["refusals"]) == ({"a": 251}, {"a": 12})


def test_threads_of_one_series_add_up() -> None:
    heaps = [heap("a", number=1, threads=2), heap("a", number=2, threads=1), heap("b", number=3, threads=0)]
    assert Machine().scrape(*heaps)["threads"] == {"a": 3, "b": 0}
    assert "threads" not in Machine().scrape(heap("a"), heap("own", kind="thread"))


def test_heaps_that_are_summed_up_keep_their_threads() -> None:
    heaps = [heap(f"h{number}", 9 - number, number=number, threads=number) for number in range(1, 6)]
    assert [one.threads for one in few_heaps(heaps, 3)] == [1, 2, 3 + 4 + 5]
    assert few_heaps([heap(f"h{number}", 1, number=number) for number in range(1, 6)], 3)[-1].threads is None


def test_a_heap_in_use_by_nothing_has_an_empty_cell() -> None:
    place = HEAP_COLUMNS.index("threads")
    cells = [heap_row(heap("a", threads=count), 1)[place] for count in (2, 0, None)]
    assert [cell.text for cell in cells] == ["2", "", ""]
    assert cells[0].key > cells[1].key


def test_no_chart_where_no_heap_was_in_use() -> None:
    samples: Any = [SimpleNamespace(detail="full", heaps=[heap("a", 5, threads=0), heap("b", 5)])]
    assert [chart.key for chart in heap_charts([0.0], samples)] == ["heaps"]
