"""How a program ended that a test has run, and what fixtures are."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from mirrors import CannotFetchError
from preload import Report, served


@dataclass(frozen=True)
class Result:
    """How a program ended.  `returncode` is -N after death by signal N; `stats` holds one report for
    each process that ended normally on hakmem."""

    returncode: int
    stdout: str
    stderr: str
    stats: list[Report] = field(default_factory=list)

    @property
    def served(self) -> int:
        """The number of processes whose blocks came from hakmem, by hakmem's own counters."""
        return sum(1 for report in self.stats if served(report) > 0)


Thing = TypeVar("Thing")
# Fixtures: run a program, compile one, find one of tests/real, count for the closing lines of `make test`.
Run = Callable[..., Result]
Compile = Callable[..., Path]
Find = Callable[[str], Path]
Tally = Callable[[int, str], None]


def captured(
    words: Sequence[str | Path], check: bool = False, **how: object
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end: its status and what it said, as text.  `how` is as of subprocess.run."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=check, **how)


def fetched(what: str, fetch: Callable[..., Thing], *arguments: object) -> Thing:
    """What `fetch` returns; the test is skipped where the mirrors do not give it."""
    try:
        return fetch(*arguments)
    except CannotFetchError as error:
        pytest.skip(f"{what} cannot be had: {error}")


def each_fetched(
    name: str, versions: Sequence[Thing], fetch: Callable[[Thing], object]
) -> Callable[..., object]:
    """A fixture: each of these versions of a C library in turn, for a module."""

    @pytest.fixture(scope="module", params=versions, ids=lambda one: one.version)
    def root(request: pytest.FixtureRequest) -> object:
        return fetched(f"{name} {request.param.version}", fetch, request.param)

    return root


def one_of_installed(*commands: object) -> Callable[..., str]:
    """A fixture: each of them in turn, for a module; names, or pytest.param of one."""

    @pytest.fixture(scope="module", params=commands)
    def given(request: pytest.FixtureRequest) -> str:
        if shutil.which(request.param) is None:
            pytest.skip(f"{request.param} is not installed")
        return str(request.param)

    return given
