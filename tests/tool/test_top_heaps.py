"""The tab of heaps in `hakmem top`: in a real terminal, by textual's own pilot, and as a plain table."""

import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hakmem.base.sizes import bytes_text
from hakmem.census.heap_figures import REST_NAME
from hakmem.target.target import open_process
from hakmem.views.top import TopApp
from hakmem.views.top_tables import TABLES, Tables
from hakmem.views.watching import HEAP_ROWS_MAX, HEAPS, Moment, Watch
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from tool.conftest import Start
from tool.processes import hakmem
from tool.terminals import Open, by_pilot, terminal, until
from tool.test_heaps import CACHE_BLOCKS, CACHE_BYTES, ODD_TEXT, told

__all__ = ["terminal"]

TAB = str(TABLES.index(HEAPS) + 1)
WIDE = 130
ALLOCATED = HEAPS.columns.index("allocated")


def cells(screen: str, name: str) -> list[str]:
    """The cells in the row of the heap of this name."""
    (row,) = (line for line in screen.splitlines() if name in line)
    return row[row.index(name) + len(name) :].split()


# ---- in a terminal -----------------------------------------------------------------------------------


def test_the_table_comes_with_the_first_heap(with_heaps: Start, terminal: Open) -> None:
    program = with_heaps(step="begun")
    shown = terminal("top", program.pid, "--every", "200ms", columns=WIDE)
    assert "7 heaps" not in shown.wait_for("fetched▼", "6 sites", "Tab 1-6 tables")
    program.go_on("made")
    shown.wait_for("7 heaps", "Tab 1-7 tables")
    shown.press(TAB)
    screen = shown.wait_for("live▼", "“cache”", ODD_TEXT, "“heap 3”", "“main loop”")
    tag, *figures, of = cells(screen, "“cache”")
    assert (tag, of) == ("7", "program")
    assert figures[:2] == bytes_text(CACHE_BYTES).split()
    limited = " ".join(cells(screen, ODD_TEXT))
    assert limited.startswith("1.00 MiB ")
    assert " 256 1.00 MiB 1.00 MiB 100 % 3 " in limited, "blocks, peak, limit, used, refused"
    assert cells(screen, "“main loop”")[-2:] == ["thread", str(program.pid)]
    shown.quit()


# ---- by textual's pilot ------------------------------------------------------------------------------


def names(app: TopApp) -> list[str]:
    table = app.query_one(DataTable)
    return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]


@pytest.mark.long("2 seconds of processor time")
def test_sorting(with_heaps: Start) -> None:
    """A missing figure sorts below all others."""
    made = ["“cache”", ODD_TEXT, "“heap 3”", "“main loop”"]

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB, "p")
        assert names(app)[:2] == made[:2], "the most live bytes first"
        for column in range(3, len(HEAPS.columns)):
            await pilot.press("s")
            assert sorted(names(app)) == sorted(made), HEAPS.columns[column]
        await pilot.press("s")
        assert names(app) == sorted(made, reverse=True)
        await pilot.press("r")
        assert names(app) == sorted(made)
        await pilot.press("s", "r")
        assert names(app)[:2] == ["“main loop”", "“cache”"], "by tag"

    by_pilot(act, with_heaps().pid, size=(WIDE, 30))


@pytest.mark.long("4 seconds of processor time")
def test_another_process_has_its_own_tables(with_heaps: Start, busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB)
        assert "“cache”" in names(app)
        app.start(open_process(busy.pid))
        await until(pilot, lambda: app.query_one(DataTable).row_count > 0)
        assert "“cache”" not in names(app)
        assert "heaps" not in str(app.query_one("#views", Static).render())
        before = app.tables.shown
        await pilot.press(TAB)
        assert app.tables.shown is before, "there is no such table"
        await pilot.press("6", "tab")
        assert app.tables.shown is TABLES[0]

    by_pilot(act, with_heaps().pid, size=(WIDE, 30))


# ---- without a terminal ------------------------------------------------------------------------------


def moment_between(target: Any, *steps: Callable[[], object]) -> Moment:  # noqa: ANN401
    """The moment of a watch that looks before and after these steps."""
    watch = Watch(target)
    assert watch.poll() is None
    for step in steps:
        step()
    moment = watch.poll()
    assert moment is not None
    return moment


def test_allocations_are_counted(with_heaps: Start) -> None:
    """Also of heaps that were not there before, and of one that has got the record of another."""
    program = with_heaps(step="begun")
    target = open_process(program.pid)
    first = moment_between(target, lambda: program.go_on("made"))
    allocated = {name: rate * first.rates.seconds for name, rate in rates_of(first).items()}
    assert allocated["“cache”"] == pytest.approx(CACHE_BLOCKS + 1)
    assert allocated[ODD_TEXT] == pytest.approx(256)
    assert allocated["“main loop”"] < 0, "not counted"
    second = moment_between(target, lambda: told(program), lambda: program.go_on("again"))
    allocated = {name: rate * second.rates.seconds for name, rate in rates_of(second).items()}
    assert allocated["“cache”"] == pytest.approx(1)
    assert allocated[ODD_TEXT] == 0


def rates_of(moment: Moment) -> dict[str, float]:
    return {row[0].text: float(row[ALLOCATED].key) for row in HEAPS.rows(moment)}


def test_many_heaps_are_few_rows(with_heaps: Start) -> None:
    count = HEAP_ROWS_MAX + 100
    program = with_heaps(count, step="begun")
    moment = moment_between(open_process(program.pid), lambda: program.go_on("made"))
    rows = HEAPS.rows(moment)
    assert len(rows) == HEAP_ROWS_MAX
    (rest,) = (row for row in rows if row[0].text.endswith(REST_NAME))
    left_out = len(moment.snapshot.heaps) - (HEAP_ROWS_MAX - 1)
    assert rest[0].text == f"{left_out} {REST_NAME}"
    live = sum(float(row[HEAPS.columns.index("live")].key) for row in rows)
    assert live == sum(heap.live_bytes for heap in moment.snapshot.heaps)
    allocated = sum(max(0.0, float(row[ALLOCATED].key)) for row in rows) * moment.rates.seconds
    assert allocated == pytest.approx(sum(heap.allocated_blocks or 0 for heap in moment.snapshot.heaps))


def test_the_table_stays_when_the_last_heap_has_gone() -> None:
    def with_so_many(heaps: int) -> Any:  # noqa: ANN401 - a moment
        return SimpleNamespace(snapshot=SimpleNamespace(heaps=[None] * heaps))

    tables = Tables()
    assert [tables.notice(with_so_many(heaps)) for heaps in (0, 1, 1, 0)] == [False, True, False, False]
    assert tables.all[-1] is HEAPS


def test_plain_tables(with_heaps: Start, busy: subprocess.Popen[str]) -> None:
    text = hakmem("top", with_heaps(30).pid, "--every", "100ms").stdout
    assert "“cache”" in text
    assert ODD_TEXT in text
    assert "… and 14 more" in text
    assert "“" not in hakmem("top", busy.pid, "--every", "100ms").stdout
