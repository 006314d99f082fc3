"""Fixtures of the tests of processes on glibc's malloc, with the tool and programs of tests/tool.

`start(command)`   runs it on the C library's malloc until it says "ready"; the lines before are in `.said`
`shape(kind)`      the same with programs/shape.c, and what it says of its parts
"""

import importlib.util
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from preload import clean_environment
from real.conftest import program, why_missing
from results import Compile
from tool.conftest import tool
from tool.processes import READY, read_until

__all__ = ["program", "tool", "why_missing"]

# Without a package index `make` leaves the tool out, and says so.
collect_ignore_glob = [] if importlib.util.find_spec("hakmem") else ["test_*.py"]

PROGRAMS = Path(__file__).parent / "programs"


class Process(subprocess.Popen[str]):
    """On glibc's malloc."""

    said: list[str]

    @property
    def parts(self) -> dict[str, int]:
        """What it says of itself, "NAME NUMBER"."""
        return {name: int(number) for name, number in (line.split() for line in self.said)}

    def go_on(self, step: str) -> None:
        """Until it says that."""
        assert self.stdin is not None
        self.stdin.write("\n")
        self.stdin.flush()
        read_until(self, step)


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """start(command, ready="ready", **variables) -> Process, ended with the test."""
    started: list[Process] = []

    def begin(
        command: Sequence[str | Path], ready: str | None = READY, cwd: Path | None = None, **variables: str
    ) -> Process:
        pipes: dict[str, Any] = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "text": True,
            "cwd": cwd,
        }
        process = Process([str(word) for word in command], env=clean_environment() | variables, **pipes)
        started.append(process)
        process.said = read_until(process, ready) if ready else []
        return process

    yield begin
    for one in started:
        one.kill()
        one.wait()
        for stream in (one.stdin, one.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def shape(start: Start, compile_c: Compile) -> Start:
    """shape("arenas", **variables) -> Process."""
    return lambda kind, **variables: start([compile_c(PROGRAMS / "shape.c"), kind], **variables)
