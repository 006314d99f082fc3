"""Fixtures of the tests that run real programs.

`program(name)`   the path of a program under test, or a skip that says why it is missing
`sides`           the program on the C library's malloc and on hakmem (see sides.py)
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from real.packages import find, install_missing
from real.sides import Side, Sides
from results import Run


@pytest.fixture(scope="session")
def why_missing() -> str:
    """Installs what packages.txt lists, once a session; says why something is still missing, or ''."""
    return install_missing()


@pytest.fixture(scope="session")
def program(why_missing: str) -> Callable[[str], Path]:
    """program("git") or program("/usr/lib/postgresql/*/bin/initdb") -> Path."""

    def get(wanted: str) -> Path:
        path = find(wanted)
        if path is None:
            pytest.skip(f"{wanted} is missing; {why_missing or 'the tests do not install it'}")
        return path

    return get


@pytest.fixture
def sides(lib: Path, plain: Run, tmp_path: Path) -> Sides:
    """Both sides, each with an empty folder.  `plain` runs the programs of both: the side's environment
    says which library serves them."""
    folders = [tmp_path / name for name in ("glibc", "hakmem")]
    for folder in folders:
        folder.mkdir()
    return Sides(
        Side("glibc", folders[0], library=None, runner=plain),
        Side("hakmem", folders[1], library=lib, runner=plain),
    )
