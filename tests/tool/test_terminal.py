"""`hakmem top` in terminals of all kinds: narrow, dumb, half of one, one that disappears; the choice of a
process; and the terminal is as it was whatever ends it."""

import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hakmem.target.process import Process
from hakmem.target.target import Target, open_process
from hakmem.views.top import ChooseProcess, TopApp
from hakmem.views.top_parts import GaugeTile, Help
from textual.pilot import Pilot
from textual.widgets import OptionList
from tool.forked import tool_environment
from tool.processes import TOOL, running, wait_until
from tool.terminals import Open, by_pilot, terminal, until

__all__ = ["terminal"]


@pytest.fixture(scope="module")
def small(lib: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a smaller RSS than `busy`."""
    with running(["sh", "-c", "echo ready; sleep 300; true"], lib) as process:
        yield process


# ---- the choice of a process ------------------------------------------------------------------------


every_process = pytest.mark.alone  # the list has every process on hakmem


def offered(screen: str) -> list[str]:
    return re.findall(r"▊ +(\d+) +(?:[\d.]+ \S*B|ended) ", screen)


@every_process
def test_the_choice_is_sorted_by_rss(
    busy: subprocess.Popen[str], small: subprocess.Popen[str], terminal: Open
) -> None:
    shown = terminal("top", rows=70)
    text = shown.wait_for(f"{small.pid} ", f"{busy.pid} ", "sorted by RSS")
    pids = offered(text)
    sizes = [Process(int(pid)).figures().rss_bytes for pid in pids if is_alive(pid)]
    assert pids.index(str(busy.pid)) < pids.index(str(small.pid))
    assert all(before > after * 0.8 for before, after in pairwise(sizes)), "as far as they stand still"


def is_alive(pid: str) -> bool:
    return Path(f"/proc/{pid}/statm").exists()


@every_process
def test_back_to_the_choice_and_on(
    busy: subprocess.Popen[str], small: subprocess.Popen[str], terminal: Open
) -> None:
    """Also when the PID was given; Escape goes back to the process before; the keys are told."""
    shown = terminal("top", busy.pid, "--every", "200ms", rows=70)
    shown.wait_for("tiny", "b processes")
    shown.press("b")
    text = shown.wait_for("Choose a process", "Escape goes back", f"{small.pid} ")
    assert f"{busy.pid} " in text
    shown.press("Escape")
    shown.wait_for("tiny", heading=f"{busy.pid} ")
    shown.press("b")
    pids = offered(screen := shown.wait_for("Choose a process", f"{small.pid} "))
    assert str(busy.pid) in pids, screen
    step = pids.index(str(small.pid)) - pids.index(str(busy.pid))
    shown.press(*["Down" if step > 0 else "Up"] * abs(step), "Enter")
    shown.wait_for(heading=f"{small.pid} sh")
    shown.quit()


@every_process
def test_another_process_after_one_has_ended(
    busy: subprocess.Popen[str], lib: Path, busy_program: Path, terminal: Open
) -> None:
    with running([busy_program, "300"], lib) as process:
        shown = terminal("top", process.pid, "--every", "200ms", rows=70)
        shown.wait_for("tiny")
    shown.wait_for("has ended", "b lists")
    shown.press("b")
    pids = offered(shown.wait_for("Choose a process", f"{busy.pid} "))
    shown.press(*["Down"] * pids.index(str(busy.pid)), "Enter")
    text = shown.wait_for("tiny", heading=f"{busy.pid} ")
    assert "has ended" not in text


def test_commands_with_brackets_are_text(busy: subprocess.Popen[str]) -> None:
    """They were read as markup: "[/]" ended top."""

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        target: Target = open_process(busy.pid)
        target.command = ["[red]x[/]", "[/bold]", "[link=x]"]
        app.push_screen(ChooseProcess([target]))
        await until(pilot, lambda: bool(app.screen.query(OptionList)))
        prompt = app.screen.query_one(OptionList).get_option_at_index(0).prompt
        assert "[red]x[/] [/bold] [link=x]" in str(prompt)
        app.end("an error [/] of [Errno 5]")

    by_pilot(act, busy.pid)


@pytest.mark.long("4 seconds in a terminal; test_resizing has the table")
def test_resizing_under_the_choice(busy: subprocess.Popen[str]) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.watch_ is not None and len(app.watch_.history) > 1)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, ChooseProcess))
        for columns in (40, 100, 20, 60):
            await pilot.resize_terminal(columns, 25)
            await pilot.pause(0.15)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ChooseProcess))
        await pilot.pause(0.3)

    by_pilot(act, busy.pid)


@pytest.mark.long("4 seconds of processor time")
def test_a_size_counts_at_once(busy: subprocess.Popen[str]) -> None:
    """Each size was laid out with the one before: a terminal that had once been narrow stayed vertical."""

    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.watch_ is not None and len(app.watch_.history) > 1)
        gauges = app.query(GaugeTile)
        for columns, rows in ((20, len(gauges)), (100, 1), (50, 2), (20, len(gauges)), (100, 1)):
            await pilot.resize_terminal(columns, 30)
            await until(pilot, lambda wanted=rows: len({tile.region.y for tile in gauges}) == wanted)  # type: ignore[misc]

    by_pilot(act, busy.pid)


@pytest.mark.long("2 seconds in a terminal each")
@pytest.mark.parametrize("key", ["question_mark", "h"])
def test_help(busy: subprocess.Popen[str], key: str) -> None:
    async def act(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, Help))
        assert isinstance(app.screen, Help)
        names = [name for name, _ in app.screen.rows]
        assert {"?", "q", "Tab", "o", "RSS", "live", "remote frees"} <= {*names}
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, Help))

    by_pilot(act, busy.pid)


# ---- narrow, dumb, gone -----------------------------------------------------------------------------


@pytest.mark.long("a second each; each width", keep=1)
@pytest.mark.parametrize("columns", [100, 60, 40, 24])
def test_all_gauges_and_keys_are_there(busy: subprocess.Popen[str], terminal: Open, columns: int) -> None:
    shown = terminal("top", busy.pid, "--every", "200ms", columns=columns, rows=40)
    gauges = ("RSS", "live", "caches", "slow paths", "remote frees", "page faults")
    text = shown.wait_for(*gauges, "fetched"[:4], str(busy.pid), "5 memory", "interval")
    assert len(re.findall(r"[\d.]+ (?:[KM]iB|B)\b", text)) >= 3
    assert len(re.findall(r"[\d.]+ ?[kM]?/s", text)) >= 3


def test_wide_tables_scroll(busy: subprocess.Popen[str], terminal: Open) -> None:
    shown = terminal("top", busy.pid, "--every", "200ms", columns=60)
    assert "in use" not in shown.wait_for("tier", "fetched")
    shown.press(*["Right"] * 6)
    text = shown.wait_for("in use", "slabs")
    assert "block" in text, "the first column stays"
    shown.press(*["Left"] * 6)
    shown.wait_for("fetched")


def on_pty(
    arguments: list[object], environment: dict[str, str], plain: int | None = None
) -> tuple[int, bytes]:
    """Runs the tool with a terminal at 0, 1 and 2, but `plain`, which is /dev/null; all that it drew."""
    outside, inside = pty.openpty()
    null = os.open(os.devnull, os.O_RDWR)
    streams = [null if number == plain else inside for number in range(3)]
    process = subprocess.Popen(
        [*TOOL, *map(str, arguments)],
        env={name: value for name, value in (tool_environment() | environment).items() if value != "-"},
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        start_new_session=True,
    )
    os.close(inside)
    os.close(null)
    drawn = b""
    try:
        while piece := os.read(outside, 65536):
            drawn += piece
            if b"\x1b[?1049h" in drawn:  # it took the whole screen
                process.kill()
    except OSError:  # EIO: nobody has the terminal any more
        pass
    os.close(outside)
    return process.wait(), drawn


@pytest.mark.long("a second each; each kind of terminal", keep=1)
@pytest.mark.parametrize("term", ["dumb", "", "unknown", "-"])
def test_a_dumb_terminal_gets_plain_tables(busy: subprocess.Popen[str], term: str) -> None:
    """ "-": TERM is not set at all."""
    status, drawn = on_pty(["top", busy.pid, "--every", "100ms"], {"TERM": term})
    assert status == 0
    assert b"remote frees" in drawn
    assert b"\x1b[?" not in drawn


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("plain", [0, 1, 2])
def test_half_a_terminal_gets_plain_tables(busy: subprocess.Popen[str], plain: int) -> None:
    """Without this, `top 2>/dev/null` showed nothing, and `top < /dev/null` died."""
    status, drawn = on_pty(["top", busy.pid, "--every", "100ms"], {"TERM": "xterm"}, plain)
    assert status == 0
    assert b"\x1b[?" not in drawn
    assert (b"remote frees" in drawn) == (plain != 1)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_leave_the_terminal_as_it_was(busy: subprocess.Popen[str], terminal: Open, name: str) -> None:
    number = signal.Signals[name]
    shown = terminal("top", busy.pid)
    shown.wait_for("remote frees", "tiny")
    os.kill(shown.child(), number)
    if number != signal.SIGINT:  # after that sh ends, too
        text = shown.wait_for(f"status {128 + number}")
        assert "remote frees" not in text, "the screen that was there before is back"
    else:
        wait_until(lambda: "tiny" not in shown.screen(), "the terminal is not given back")


@pytest.mark.long("4 seconds of processor time")
def test_a_terminal_that_disappears(busy: subprocess.Popen[str], terminal: Open) -> None:
    shown = terminal("top", busy.pid)
    shown.wait_for("remote frees")
    pid = shown.child()
    shown.tmux("kill-server")
    wait_until(lambda: not is_alive(str(pid)), "top lives on without its terminal")


@pytest.mark.long("4 seconds in a terminal")
def test_progress_of_record_is_cleared(busy: subprocess.Popen[str], tmp_path: Path, terminal: Open) -> None:
    """Ctrl-C while the bar is shown: the cursor is back, the recording is there."""
    words = ["record", busy.pid, "--for", "60s", "--every", "50ms", "-o", tmp_path / "run.json"]
    shown = terminal(*words, columns=180)  # the message in one line
    shown.wait_for("samples, RSS")
    shown.press("C-c")
    text = shown.wait_for("recording finished (stopped by the user): ")
    assert "Traceback" not in text
    assert shown.tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"
