"""valgrind and hakmem in the same process.

By itself valgrind puts its own malloc in hakmem's place and finds what it always finds.  Told not to
(--soname-synonyms=somalloc=nouserintercepts) it runs hakmem like any other code: nothing that hakmem does
may look like an error to it.  Programs that hakmem was not built for are run so."""

import shutil
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import Compile, Result, Run, Tally

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
ERRORS_FOUND = 9
MEMCHECK = ["valgrind", "-q", f"--error-exitcode={ERRORS_FOUND}"]
HAKMEM_SERVES = [*MEMCHECK, "--soname-synonyms=somalloc=nouserintercepts"]

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="not installed: valgrind")

PROGRAMS: dict[str, list[str]] = {
    "bash": ["bash", "-c", "for i in $(seq 300); do x[$i]=$i$i$i; done; echo ${#x[@]}"],
    "perl": ["perl", "-e", "my %h = map { $_ => 'x' x $_ } 1 .. 3000; print scalar(keys %h), qq(\\n)"],
    "python": [
        "python3",
        "-S",
        "-c",
        "import json; print(len(json.dumps([{'a': [i] * 9} for i in range(2000)])))",
    ],
    "sort": ["sort", "-R", "/usr/include/stdlib.h"],
}


def assert_no_errors(result: Result) -> None:
    assert result.returncode == 0, result.stderr
    assert "ERROR SUMMARY" not in result.stderr
    assert result.served >= 1


@pytest.mark.long("a second each; valgrind runs whole programs", keep=1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, preload: Run, plain: Run, tally: Tally) -> None:
    environment = {"PYTHONMALLOC": "malloc", "LC_ALL": "C"}
    result = preload([*HAKMEM_SERVES, *PROGRAMS[name]], env=environment, timeout=240)
    assert_no_errors(result)
    if name != "sort":  # whose order is random here
        assert result.stdout == plain(PROGRAMS[name], env=environment).stdout
    tally(1, "programs")


@pytest.mark.long("2 seconds under valgrind each")
@pytest.mark.parametrize("build", ["lib", "debug_lib"])
def test_every_tier_and_many_threads(
    build: str, request: pytest.FixtureRequest, compile_c: Compile, preload: Run
) -> None:
    program = compile_c(TESTS / "concurrency" / "fuzz.c", INCLUDE_TESTS)
    command = [*HAKMEM_SERVES, program, "31", "3", "4", "2000"]
    assert_no_errors(preload(command, library=request.getfixturevalue(build), timeout=240))


def test_valgrinds_own_malloc_comes_first(compile_c: Compile, preload: Run) -> None:
    """As with any program: hakmem does not hide the errors that valgrind is there to find."""
    program = compile_c(HERE / "leak.c")
    result = preload([*MEMCHECK, "--leak-check=full", program])
    assert result.returncode == ERRORS_FOUND
    assert "Invalid write of size 1" in result.stderr
    assert "1,000 bytes in 1 blocks are definitely lost" in result.stderr
