"""The tab of sites in `hakmem top`: in a real terminal, and by textual's own pilot."""

import os
import re
import signal
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest
from hakmem.profile import watch as watch_module
from hakmem.profile.model import Profile
from hakmem.profile.session import is_on
from hakmem.profile.watch import SiteWatch
from hakmem.target.target import open_process
from hakmem.views.top import TopApp
from hakmem.views.top_sites import SITES
from hakmem.views.top_tables import TABLES
from textual.pilot import Pilot
from textual.widgets import DataTable, Static
from tool.leases import ends_by_itself
from tool.processes import hakmem, running, wait_until
from tool.terminals import Open, by_pilot, terminal, until

__all__ = ["terminal"]

KEEPS = "keeps (sites.c:"
UNNAMED = re.compile(r"sites\S*\+0x")
SIZE = (120, 30)
TAB = str(TABLES.index(SITES) + 1)


@pytest.fixture
def wide(terminal: Open) -> Open:
    """Call stacks are long."""
    return partial(terminal, columns=130)


def has_profile(pid: int) -> bool:
    return is_on(open_process(pid))


# ---- in a terminal ----------------------------------------------------------------------------------


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("variable", ["A=1", "NO_COLOR=1"])
def test_switched_on_shown_and_switched_off(sites: subprocess.Popen[str], wide: Open, variable: str) -> None:
    shown = wide("top", sites.pid, "--every", "200ms", variable=variable)
    shown.wait_for("tiny", f"{TAB} sites", "o profile")
    shown.press(TAB)
    shown.wait_for("No heap profile is on", "o switches one on", "off again when you leave top")
    assert not has_profile(sites.pid), "looking at it is not asking for it"
    shown.press("o")
    shown.wait_for(KEEPS, "95 % interval", "A heap profile is on", "so does leaving top", "one in")
    row = re.compile(r"[\d.]+ [KM]iB +\+[\d.]+ [KM]iB +keeps \(sites.c:\d+\) ← main")
    wait_until(lambda: row.search(shown.screen()), "it does not grow")
    assert has_profile(sites.pid)
    shown.quit()
    wait_until(lambda: not has_profile(sites.pid), "it stays on")


def test_switched_off_by_the_key(sites: subprocess.Popen[str], wide: Open) -> None:
    shown = wide("top", sites.pid, "--every", "200ms")
    shown.wait_for("tiny")
    shown.press("o")  # from another table: only shows this one
    shown.wait_for("No heap profile is on")
    shown.press("o")
    shown.wait_for(KEEPS)
    shown.press("o")
    shown.wait_for("The profile has ended; its last figures stay.", KEEPS)
    assert not has_profile(sites.pid)


def test_a_profile_that_was_on_stays_on(sites: subprocess.Popen[str], wide: Open) -> None:
    hakmem("profile", sites.pid, "--on")
    shown = wide("top", sites.pid, "--every", "200ms")
    shown.wait_for("tiny")
    shown.press(TAB)
    shown.wait_for(KEEPS, "It was on already, and stays on.")
    shown.quit()
    assert has_profile(sites.pid)


@pytest.mark.alone  # the list has every process on hakmem
def test_the_other_process_is_left_as_it_was(
    sites: subprocess.Popen[str], busy: subprocess.Popen[str], wide: Open
) -> None:
    shown = wide("top", sites.pid, "--every", "200ms", rows=70)
    shown.wait_for("tiny")
    shown.press(TAB, "o")
    shown.wait_for(KEEPS)
    shown.press("b")
    shown.wait_for("Choose a process", f"{busy.pid} ")
    pids = re.findall(r"▊ +(\d+) +(?:[\d.]+ \S*B|ended) ", shown.screen())
    step = pids.index(str(busy.pid)) - pids.index(str(sites.pid))
    shown.press(*["Down" if step > 0 else "Up"] * abs(step), "Enter")
    shown.wait_for("No heap profile is on", heading=f"{busy.pid} ")
    wait_until(lambda: not has_profile(sites.pid), "it stays on in the first process")


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_whatever_ends_top_ends_the_profile(sites: subprocess.Popen[str], wide: Open, name: str) -> None:
    """Killed, it cannot; then the lease does."""
    shown = wide("top", sites.pid, "--every", "200ms")
    shown.wait_for("tiny")
    shown.press(TAB, "o")
    shown.wait_for(KEEPS)
    child = shown.child()
    os.kill(child, signal.Signals[name])
    wait_until(lambda: not Path(f"/proc/{child}/statm").exists(), "top goes on")
    if name == "SIGKILL":
        assert ends_by_itself(sites.pid)
    else:
        wait_until(lambda: not has_profile(sites.pid), "it stays on")


def test_refusal(sites_program: Path, lib: Path, wide: Open) -> None:
    with running([sites_program], lib, {"HAKMEM_PROFILE": "never"}) as process:
        shown = wide("top", process.pid, "--every", "200ms")
        shown.wait_for("tiny")
        shown.press(TAB, "o")
        shown.wait_for("refuses heap profiles: it was started with HAKMEM_PROFILE=never")
        shown.quit()


@pytest.mark.long("a second each; each width", keep=1)
@pytest.mark.parametrize("columns", [80, 60, 40, 24])
def test_narrow(sites: subprocess.Popen[str], wide: Open, columns: int) -> None:
    """What does not fit can be scrolled to; the bytes stay."""
    shown = wide("top", sites.pid, "--every", "200ms", columns=columns, rows=45)
    shown.wait_for("tiny"[:2], str(sites.pid))
    shown.press(TAB, "o")
    shown.wait_for("A heap profile is on", "bytes", "MiB")

    def is_at_the_end() -> bool:
        """Keys that come before the first row scroll nothing."""
        shown.press("Right")
        return all(text in shown.screen() for text in ("bytes", "share", "%"))

    wait_until(is_at_the_end, "the last column never comes")


# ---- by textual's pilot -----------------------------------------------------------------------------


def texts(app: TopApp) -> list[list[str]]:
    table = app.query_one(DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


def bytes_of(text: str) -> float:
    number, unit = text.split()
    return float(number) * 1024 ** ("B", "KiB", "MiB", "GiB").index(unit)


def note(app: TopApp) -> str:
    return str(app.query_one("#sites", Static).render())


@pytest.mark.long("2 seconds of processor time")
def test_rows_add_up_and_sort(sites: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB, "o")
        await until(pilot, lambda: any(KEEPS in row[2] for row in texts(app)))
        await pilot.press("p")
        await until(pilot, lambda: not app.query_one("SitesPanel").is_busy)  # type: ignore[attr-defined]
        assert app.sites is not None
        found = app.sites.shown
        assert found is not None
        parts = sum(one.after.value for one in found.changes) + found.after.before.value
        assert parts + found.after.unsampled_bytes == pytest.approx(found.after.total_bytes)
        rows = texts(app)
        sizes = [bytes_of(row[0]) for row in rows]
        assert sizes == sorted(sizes, reverse=True), "the largest first"
        assert sum(sizes) == pytest.approx(found.after.total_bytes, rel=0.02)
        await pilot.press("s", "s")
        names = [row[2] for row in texts(app)]
        assert names == sorted(names, reverse=True)

    by_pilot(act, sites.pid, size=SIZE)


@pytest.mark.long("3 seconds of processor time")
def test_growth_from_now_on(sites: subprocess.Popen[str]) -> None:
    """z counts from the last reading: nothing has grown since, until there is another."""

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB, "o")
        await until(pilot, lambda: any(KEEPS in row[2] and row[1].startswith("+") for row in texts(app)))
        await pilot.press("p")
        await until(pilot, lambda: not app.query_one("SitesPanel").is_busy)  # type: ignore[attr-defined]
        await pilot.press("z")
        await until(pilot, lambda: all(row[1] == "·" for row in texts(app)))
        await pilot.press("p")
        await until(pilot, lambda: any(KEEPS in row[2] and "+" in row[1] for row in texts(app)))

    by_pilot(act, sites.pid, size=SIZE)


@pytest.mark.long("4 seconds in a terminal")
def test_resizing(sites: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB, "o")
        await until(pilot, lambda: bool(texts(app)) and "A heap profile is on" in note(app))
        for columns in (40, 100, 20, 60, 120):
            await pilot.resize_terminal(columns, 25)
            await until(pilot, lambda wanted=columns: app.size.width == wanted)  # type: ignore[misc]
        assert texts(app)

    by_pilot(act, sites.pid, size=SIZE)


@pytest.mark.long("4 seconds in a terminal")
def test_a_slow_reading_stalls_nothing(sites: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauges go on, keys are answered, and one reading runs at a time."""
    go_on, begun = threading.Event(), list[int]()
    read = SiteWatch.read

    def slow(self: SiteWatch, since: Profile | None = None) -> object:
        begun.append(1)
        assert go_on.wait(60)
        return read(self, since=since)

    monkeypatch.setattr(SiteWatch, "read", slow)

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB, "o")
        await until(pilot, lambda: bool(begun))
        assert app.watch_ is not None
        seen = app.watch_.history[-1]
        await until(pilot, lambda: app.watch_ is not None and app.watch_.history[-1] is not seen)
        await pilot.press("1")
        assert app.query_one(DataTable).row_count > 0
        await pilot.press(TAB)
        assert len(begun) == 1
        go_on.set()
        await until(pilot, lambda: any(KEEPS in row[2] for row in texts(app)))

    try:
        by_pilot(act, sites.pid, size=SIZE)
    finally:
        go_on.set()


@pytest.mark.long("a second of processor time")
def test_the_table_does_not_wait_for_names(
    sites: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    find = watch_module.name_addresses

    def slow(*arguments: object) -> None:
        assert go_on.wait(60)
        find(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(watch_module, "name_addresses", slow)

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(TAB, "o")
        await until(pilot, lambda: any(UNNAMED.search(row[2]) for row in texts(app)))
        assert "Names are being looked up." in note(app)
        go_on.set()
        await until(pilot, lambda: any(KEEPS in row[2] for row in texts(app)))
        assert not any(UNNAMED.search(row[2]) for row in texts(app))

    try:
        by_pilot(act, sites.pid, size=SIZE)
    finally:
        go_on.set()


# ---- without a terminal -----------------------------------------------------------------------------


def test_plain_tables_have_the_profile_that_is_on(sites: subprocess.Popen[str]) -> None:
    assert "by site" not in hakmem("top", sites.pid, "--every", "100ms").stdout
    hakmem("profile", sites.pid, "--on")
    wait_until(lambda: open_process(sites.pid) and has_profile(sites.pid), "it does not go on")
    wait_until(lambda: KEEPS in hakmem("top", sites.pid, "--every", "100ms").stdout, "no site")
    assert has_profile(sites.pid)
