"""Building the benchmark programs: plain `cc -O2`, so that what is measured is the allocator."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from .paths import OUTPUT, PROGRAMS, REAL, SUPPORT

# All code is checked for changes: slow_clock changes some that may have run already.
VALGRIND = ("valgrind", "--smc-check=all", "--trace-children=yes", "-q")
FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-pthread"]


class BuildError(Exception):
    """A program could not be built; the text is the compiler's."""


@cache  # once a campaign: sources may change while it runs
def build_program(name: str) -> Path:
    """The executable of bench/programs/NAME.c."""
    return _build(OUTPUT / name, [PROGRAMS / f"{name}.c", *SUPPORT.iterdir()], [f"-I{SUPPORT}"])


@cache
def build_launcher() -> Path:
    """The executable of bench/real/launch.c."""
    return _build(OUTPUT / "launch", [REAL / "launch.c"], [])


@cache
def build_slow_clock() -> Path:
    """The library of bench/real/slow_clock.c, to be preloaded."""
    flags = ["-shared", "-fPIC", f"-I{REAL.parents[1] / 'tests'}"]
    return _build(OUTPUT / "slow_clock.so", [REAL / "slow_clock.c"], flags)


def with_slow_clock(preload: str, library: Path | None) -> dict[str, str]:
    """The environment of a program on this allocator and that clock.  hakmem asks the kernel for the time."""
    variables = {"LD_PRELOAD": f"{preload}:{build_slow_clock()}"}
    return variables | (place_of_calls(library) if library else {})


def place_of_calls(library: Path) -> dict[str, str]:
    """The option of a program that includes tests/kernel_calls.h; none for another allocator's library."""
    symbols = subprocess.run(["nm", str(library)], capture_output=True, text=True, check=False).stdout
    place = re.search(r"^(\w+) t system_call$", symbols, re.MULTILINE)
    return {"SYSTEM_CALL_AT": place[1]} if place else {}


def _build(executable: Path, inputs: list[Path], more_flags: list[str]) -> Path:
    return compile_anew(executable, [*inputs, Path(__file__)], [*FLAGS, *more_flags])


def compile_anew(
    executable: Path, inputs: list[Path], flags: list[str], libraries: Sequence[str] = ()
) -> Path:
    """The executable, made of the C files among its inputs when any of those is younger than it."""
    if executable.exists() and all(i.stat().st_mtime <= executable.stat().st_mtime for i in inputs):
        return executable
    executable.parent.mkdir(parents=True, exist_ok=True)
    # Built beside and renamed: an interrupted compiler leaves no half program that looks up to date.
    unfinished = executable.parent / f".{executable.name}.{os.getpid()}"
    units = [str(path) for path in sorted(inputs) if path.suffix == ".c"]
    command = [os.environ.get("CC", "cc"), *flags, *units, *libraries, "-o", str(unfinished)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"no C compiler: {error}") from error
    if done.returncode != 0:
        raise BuildError(done.stderr)
    unfinished.replace(executable)
    return executable
