"""The tool in a terminal of its own (tmux), and by textual's own pilot.

`terminal("top", …)`     a fixture; its `press` and `wait_for` are a user's hands and eyes"""

import asyncio
import shlex
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hakmem.target.target import open_process
from hakmem.views.top import TopApp
from results import Find, captured
from textual.pilot import Pilot
from textual.widgets import DataTable
from tool.forked import tool_environment
from tool.processes import TOOL, wait_until

COLUMNS, ROWS = 100, 30


class Terminal:
    """A command in a terminal."""

    def __init__(self, command: list[str], columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.socket = f"hakmem-{uuid.uuid4().hex[:8]}"
        line = f"{shlex.join(command)}; echo status $?; sleep 60"
        environment = tool_environment() | {"TERM": "xterm-256color"}
        environment.pop("COLUMNS")  # the terminal knows its width itself
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), line, environment=environment)

    def tmux(self, *words: str, environment: dict[str, str] | None = None) -> str:
        """One command of tmux."""
        step = captured(["tmux", "-L", self.socket, "-f", "/dev/null", *words], env=environment, check=True)
        return step.stdout

    def screen(self) -> str:
        """What it shows now."""
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """As a user does."""
        self.tmux("send-keys", *keys)

    def quit(self) -> None:
        self.press("q")
        self.wait_for("status 0")

    def wait_for(self, *texts: str, heading: str = "") -> str:
        """The screen as soon as it begins with the heading and shows all of these, in one line or wrapped."""
        shown = [""]

        def is_there() -> bool:
            shown[0] = self.screen()
            words = " ".join(shown[0].split())
            return words.startswith(heading) and all(text in shown[0] + words for text in texts)

        try:
            wait_until(is_there, "")
        except pytest.fail.Exception:
            pytest.fail(f"the terminal never shows {heading} {texts!r}, but\n{shown[0]}")
        return shown[0]

    def child(self) -> int:
        """The tool's PID: the terminal's shell has one child."""
        shell = self.tmux("list-panes", "-F", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(program: Find) -> Iterator[Open]:
    """terminal("top", …, columns=60, rows=30, variable="A=1") -> Terminal, ended with the test."""
    program("tmux")
    opened: list[Terminal] = []

    def start(
        *arguments: object, columns: int = COLUMNS, rows: int = ROWS, variable: str = "A=1"
    ) -> Terminal:
        opened.append(Terminal(["env", variable, *TOOL, *map(str, arguments)], columns, rows))
        return opened[-1]

    yield start
    for one in opened:
        subprocess.run(["tmux", "-L", one.socket, "kill-server"], capture_output=True, check=False)


async def until(pilot: Pilot[None], is_so: Callable[[], bool]) -> None:
    """Waits for what the app does by itself."""
    for _ in range(1200):
        if is_so():
            return
        await pilot.pause(0.05)
    pytest.fail("the app did not come so far")


def by_pilot(
    act: Callable[[TopApp, Pilot[None]], object], *pids: int, size: tuple[int, int] = (COLUMNS, ROWS)
) -> None:
    """Runs the app without a terminal; `act` is a coroutine function of it and its pilot."""

    async def run() -> None:
        app = TopApp([open_process(pid) for pid in pids], 0.1)
        async with app.run_test(size=size) as pilot:
            if len(pids) == 1:
                await until(pilot, lambda: app.query_one(DataTable).row_count > 0)
            await act(app, pilot)  # type: ignore[misc]
        app.leave_sites()

    asyncio.run(run())
