"""`hakmem top`: in a real terminal (tmux), by textual's own pilot, and as plain tables."""

import re
import subprocess
from pathlib import Path

import pytest
from hakmem.views.top import ChooseProcess, TopApp
from hakmem.views.watching import VIEWS
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from tool.processes import hakmem, running
from tool.terminals import Open, by_pilot, terminal, until

__all__ = ["terminal"]


# ---- in a terminal ----------------------------------------------------------------------------------


def test_views_and_leaving(busy: subprocess.Popen[str], terminal: Open) -> None:
    shown = terminal("top", busy.pid, "--every", "200ms")
    gauges = ("RSS", "live", "caches", "slow paths", "remote frees", "page faults")
    first = shown.wait_for("tiny", *gauges, "█", heading=f"{busy.pid} ")
    assert str(busy.pid) in first.splitlines()[0]
    shown.press("2")
    shown.wait_for("bytes out", "running")
    shown.press("3")
    shown.wait_for("refills", "magazine misses of malloc")
    shown.press("4")
    shown.wait_for("madvise", "page faults, minor")
    shown.press("Tab")
    shown.wait_for("share", "live blocks")
    shown.quit()


def test_process_that_ends(lib: Path, busy_program: Path, terminal: Open) -> None:
    """A clear message, the last figures, and q still leaves."""
    with running([busy_program, "300"], lib) as process:
        shown = terminal("top", process.pid, "--every", "200ms")
        shown.wait_for("tiny")
    text = shown.wait_for(f"Process {process.pid} has ended")
    assert "the last figures stay. q quits" in text
    assert "tiny" in text
    shown.quit()


@pytest.mark.alone  # the list has every process on hakmem
def test_choice_among_processes(
    busy: subprocess.Popen[str], lib: Path, busy_program: Path, terminal: Open
) -> None:
    with running([busy_program, "300"], lib) as other:
        shown = terminal("top")
        text = shown.wait_for(f"{other.pid} ")
        assert "Choose a process" in text
        offered = re.findall(r"^\W+(\d+) +(?:[\d.]+ \S*B|ended) ", text, re.MULTILINE)
        assert str(busy.pid) in offered
        shown.press(*["Down"] * offered.index(str(other.pid)), "Enter")
        heading = shown.wait_for("tiny", heading=f"{other.pid} ").splitlines()[0]
        assert heading.split()[0] == str(other.pid)
        shown.quit()


def test_interrupt_leaves_cleanly(busy: subprocess.Popen[str], terminal: Open) -> None:
    shown = terminal("top", busy.pid)
    shown.wait_for("RSS")
    shown.press("C-c")
    assert "Traceback" not in shown.wait_for("status 0")


# ---- by textual's pilot -----------------------------------------------------------------------------


def column(app: TopApp, place: int) -> list[str]:
    """The texts of a column."""
    table = app.query_one(DataTable)
    return [str(table.get_row_at(row)[place]) for row in range(table.row_count)]


@pytest.mark.long("4 seconds in a terminal")
def test_every_view_has_its_columns_and_rows(busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        for number, view in enumerate(VIEWS):
            await pilot.press(str(number + 1))
            table = app.query_one(DataTable)
            assert len(table.columns) == len(view.columns)
            assert table.row_count > 0, view.name

    by_pilot(act, busy.pid)


def test_sorting(busy: subprocess.Popen[str]) -> None:
    """By the next column, and the other way round."""

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("p", "3", "s", "s", "s")  # around to the names
        names = column(app, 0)
        assert names == sorted(names, reverse=True)
        await pilot.press("r")
        assert column(app, 0) == sorted(names)

    by_pilot(act, busy.pid)


@pytest.mark.long("2 seconds of processor time")
def test_pausing(busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        await until(pilot, lambda: not app.is_polling)
        assert app.watch_ is not None
        seen = app.watch_.history[-1]
        await pilot.pause(0.3)  # three times its pace
        assert app.watch_.history[-1] is seen
        assert "paused" in str(app.query_one("#head", Static).render())
        await pilot.press("p")
        await until(pilot, lambda: app.watch_ is not None and app.watch_.history[-1] is not seen)

    by_pilot(act, busy.pid)


def test_pace(busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("minus", "minus")
        assert app.interval_s == pytest.approx(0.4)
        await pilot.press("plus")
        assert app.interval_s == pytest.approx(0.2)

    by_pilot(act, busy.pid)


def test_rates_are_those_of_the_process(busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.watch_ is not None and len(app.watch_.history) >= 3)
        assert app.watch_ is not None
        rates = app.watch_.history[-1].rates
        assert rates.slow_paths_per_s > 0
        assert rates.remote_frees_per_s > 0
        assert all(rate >= 0 for rate in rates.counters.values())

    by_pilot(act, busy.pid)


def test_leaving_the_choice_leaves_top(busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: isinstance(app.screen, ChooseProcess))
        await pilot.press("escape")
        await until(pilot, lambda: not app.is_running)

    by_pilot(act, busy.pid, busy.pid)


# ---- without a terminal -----------------------------------------------------------------------------


def test_plain_tables(busy: subprocess.Popen[str]) -> None:
    """Also without --once: standard output is a pipe."""
    text = hakmem("top", busy.pid, "--every", "200ms").stdout
    assert "RSS" in text
    assert "refills" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 110


def test_process_that_is_gone() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    hakmem("top", process.pid, status=4)
