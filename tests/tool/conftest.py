"""Fixtures of the tests of python/hakmem.

`tool(*arguments)`       runs `hakmem` as a user does; `tool.json(...)` what it printed with --json
`stepper(command)`       a program of programs/ that goes on step by step, on hakmem unless told otherwise
`on_hakmem(command)`     any other program on hakmem, ended with the test
`compiled(name, *flags)` a program of programs/
`with_heaps(count)`      a program that has made heaps of its own, and so many more
`sites`                  a program with a site that keeps what it allocates, and one that frees it
`busy`, `run`            a program that allocates all the time, and a short recording of it
`program(name)`          a program under test, or a skip that says why it is missing (from tests/real)
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from preload import clean_environment, preload_environment
from real.conftest import program, why_missing
from results import Compile
from tool.forked import Ending, forked
from tool.processes import PROGRAMS, hakmem, runs

__all__ = ["program", "why_missing"]

Command = Sequence[str | Path]

# Without a package index `make` leaves the tool out, and says so.
collect_ignore_glob = [] if importlib.util.find_spec("hakmem") else ["test_*.py"]


@dataclass(frozen=True)
class Tool:
    """The console script beside this Python."""

    path: Path
    library: Path

    def __call__(self, *arguments: str | Path | int, **variables: str) -> Ending:
        environment = clean_environment() | {"HAKMEM_LIBRARY": str(self.library)} | variables
        ending = forked(arguments, environment=environment)
        assert "Traceback" not in ending.stderr, ending.stderr
        return ending

    def json(self, *arguments: str | Path | int) -> Any:  # noqa: ANN401 - whatever it printed
        ended = self(*arguments, "--json")
        assert ended.status == 0, ended.stderr
        return json.loads(ended.stdout)


@pytest.fixture(scope="session")
def tool(lib: Path) -> Tool:
    return Tool(Path(sys.executable).with_name("hakmem"), lib)


@pytest.fixture(scope="session")
def compiled(compile_c: Compile) -> Compile:
    """compiled("blocks", *flags) -> the program."""
    return lambda name, *flags: compile_c(PROGRAMS / f"{name}.c", *flags)


StartOnHakmem = Callable[..., subprocess.Popen[bytes]]


class Stepper:
    """A running program of programs/ that uses steps.h."""

    def __init__(self, command: Command, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, step: str) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line == step, f"{line!r}, not {step!r}; status {self.process.poll()}"

    def go_on(self, step: str | None = None) -> None:
        """To the next step; None: it is not waited for."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        if step is not None:
            self.wait_for(step)

    def end(self) -> None:
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


Start = Callable[..., Stepper]


@pytest.fixture
def stepper(lib: Path) -> Iterator[Start]:
    """stepper(command, first step, preload=True, **variables) -> Stepper, at its first step."""
    started: list[Stepper] = []

    def start(command: Command, first: str, preload: bool = True, **variables: str) -> Stepper:
        environment = preload_environment(lib) if preload else clean_environment()
        started.append(Stepper(command, environment | variables))
        started[-1].wait_for(first)
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture(scope="session")
def traced(compiled: Compile, tmp_path_factory: pytest.TempPathFactory, lib: Path) -> Iterator[Path]:
    """A trace of programs/traced.c, which works while it is recorded."""
    from hakmem.target.target import open_process  # the tool may be left out
    from hakmem.trace.record import record
    from hakmem.views.screen import progress_bar

    program = Stepper([compiled("traced", "-pthread")], preload_environment(lib))
    program.wait_for("ready")
    path = tmp_path_factory.mktemp("traces") / "x.hkt"
    threading.Timer(0.7, program.go_on).start()
    record(open_process(program.pid), path, 2.0, progress_bar)
    program.wait_for("done")
    yield path
    program.end()


@pytest.fixture
def with_heaps(compiled: Compile, stepper: Start, lib: Path) -> Start:
    """with_heaps(count=0, step="made", **variables): programs/heaps.c at this step."""
    program = compiled("heaps", lib, f"-Wl,-rpath,{lib.parent}")

    def start(count: int = 0, step: str = "made", **variables: str) -> Stepper:
        started = stepper([program, count], "begun", preload=False, HAKMEM_HELPER_THREAD="0", **variables)
        if step != "begun":
            started.go_on(step)
        return started

    return start


@pytest.fixture
def on_hakmem(lib: Path) -> Iterator[StartOnHakmem]:
    """on_hakmem(command, library=lib, **options of Popen) -> Popen.  library=None: on the C library's."""
    started: list[subprocess.Popen[bytes]] = []

    def start(command: Command, library: Path | None = lib, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
        environment = preload_environment(library) if library else clean_environment()
        words = [str(word) for word in command]
        started.append(subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, **options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def sites_program(compiled: Compile) -> Path:
    """Two sites: one keeps what it allocates, the other frees it."""
    return compiled("sites", "-g")


sites = runs("sites.c", flags=["-g"], scope="function")


@pytest.fixture(scope="session")
def busy_program(compile_c: Compile) -> Path:
    """Threads that allocate, and free each other's blocks."""
    return compile_c(PROGRAMS / "busy.c")


busy = runs("busy.c", "3600")


@pytest.fixture(scope="module")
def run(busy: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "run.json"
    hakmem("record", busy.pid, "--for", "1s", "--every", "100ms", "-o", path)
    return path
