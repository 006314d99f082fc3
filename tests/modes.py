"""A test program meets hakmem in one of these ways.

`preload`   built without knowing hakmem, run with LD_PRELOAD
`linked`    linked against libhakmem.so
`static`    linked with libhakmem.a
and each with the suffix `-debug`: the library whose assertions are on.

`run_program(source, mode, *flags, ...)` builds and runs one.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from preload import json_stats_option, read_reports, served
from results import Compile, Result, Run

INCLUDE_TESTS = f"-I{Path(__file__).resolve().parent}"

ALL_MODES = ("preload", "linked", "static", "preload-debug")
# For programs that call hak_*: they cannot be linked without the library.
OWN_API_MODES = ("linked", "static", "linked-debug")


def modes_for(source: Path) -> tuple[str, ...]:
    return OWN_API_MODES if '"hakmem/hakmem.h"' in source.read_text() else ALL_MODES


def ways_of(*sources: Path) -> dict[str, Path]:
    """What programs can do (ways.h): name → the program that does it."""
    row = re.compile(r"^[A-Z_]+\((\w+)", re.MULTILINE)
    return {name: source for source in sources for name in row.findall(source.read_text())}


def assert_silent(result: Result) -> None:
    """The program found nothing wrong, and nothing was printed."""
    seen = (result.returncode, result.stdout, result.stderr)
    assert seen == (0, "", ""), f"status {seen[0]}, stdout {seen[1]!r}, stderr {seen[2]!r}"


def assert_clean(result: Result, stdout: str = "") -> None:
    """The program found nothing wrong, nothing was printed, and hakmem served its blocks."""
    seen = (result.returncode, result.stdout, result.stderr)
    assert seen == (0, stdout, ""), f"status {seen[0]}, stdout {seen[1]!r}, stderr {seen[2]!r}"
    assert result.stats, "no report: the program did not run on hakmem"
    assert all(served(report) > 0 for report in result.stats), "hakmem served no block"


@pytest.fixture
def run_program(
    request: pytest.FixtureRequest, compile_c: Compile, preload: Run, plain: Run, tmp_path: Path
) -> Run:
    """run_program(source, mode, *flags, args=(), env=None, timeout=60, compiler=None, stats=True)."""

    def run(
        source: Path,
        mode: str,
        *flags: str | Path,
        args: Sequence[str | Path] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        compiler: str | None = None,
        stats: bool = True,
    ) -> Result:
        how, _, debug = mode.partition("-")
        shared: Path = request.getfixturevalue("debug_lib" if debug else "lib")
        if how == "preload":
            program = compile_c(source, INCLUDE_TESTS, *flags, compiler=compiler)
            return preload([program, *args], env=env, timeout=timeout, library=shared, stats=stats)
        library = [shared.with_suffix(".a")] if how == "static" else [shared, f"-Wl,-rpath,{shared.parent}"]
        program = compile_c(source, INCLUDE_TESTS, *flags, *library, compiler=compiler)
        options = {"HAKMEM_STATS": json_stats_option(tmp_path)} if stats else {}
        result = plain([program, *args], env=options | dict(env or {}), timeout=timeout)
        reports = read_reports(tmp_path) if stats else []
        return Result(result.returncode, result.stdout, result.stderr, reports)

    return run
