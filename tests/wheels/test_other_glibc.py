"""The wheel's library on other versions of glibc than this machine's.

`make test` runs programs on the oldest that the mirror has; `make test-wheels` all of kernels/programs.py on
each."""

import json
import os
import platform
import zipfile
from pathlib import Path

import pytest
from kernels.programs import PROGRAMS, Program
from preload import run_clean, served
from results import each_fetched
from wheels.glibcs import GLIBCS, Root, fetch

TESTS = Path(__file__).resolve().parents[1]
IS_FULL = os.environ.get("GLIBCS") == "all"
# What differs by the C library: the ends of threads, fork handlers.
TELLING = (
    "concurrency/blocks_outlive_thread",
    "concurrency/fork_under_load-40-fork",
    "concurrency/fuzz-1-2-4-5000",
    "concurrency/key_destructors",
    "api/realloc_content",
)
# Programs that call what an older glibc does not have.
SINCE = {"api/mallinfo.c": (2, 33)}
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CHOSEN = [one for one in PROGRAMS if IS_FULL or one.name in TELLING]

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the versions of glibc that are fetched are x86-64's"
)


root = each_fetched("glibc", GLIBCS if IS_FULL else GLIBCS[:1], fetch)


@pytest.fixture(scope="module")
def library(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it is in the wheel."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "hakmem" / "lib" / "libhakmem.so"


def number(version: str) -> tuple[int, ...]:
    """2.41-12 → (2, 41)."""
    return tuple(map(int, version.split("-")[0].split(".")[:2]))


def why_not(program: Program, root: Root) -> str | None:
    """Why it cannot run there."""
    if number(root.version()) < SINCE.get(program.source, ()):
        return f"{program.source} calls what glibc has since {SINCE[program.source]}"
    mode = HUGE_PAGES.read_text().partition("[")[2].partition("]")[0] if HUGE_PAGES.exists() else "none"
    if program.huge_pages != mode:
        return f"huge pages are in mode {mode}, it is for {program.huge_pages}: make test-kernels"
    return None


def test_it_is_that_glibc(root: Root) -> None:
    assert number(root.version()) != number(platform.libc_ver()[1])


@pytest.mark.long("a second each", keep=2)
@pytest.mark.parametrize("program", CHOSEN, ids=lambda one: one.name)
def test_program(program: Program, root: Root, library: Path, tmp_path: Path) -> None:
    if reason := why_not(program, root):
        pytest.skip(reason)
    made = root.build(TESTS / program.source, tmp_path / "program")
    report = tmp_path / "report.json"
    step = run_clean(
        [made, *program.arguments],
        LD_PRELOAD=str(library),
        HAKMEM_STATS=f"json:{report}",
        **program.environment,
    )
    assert (step.returncode, step.stderr) == (0, "")
    if program.reports:
        assert served(json.loads(report.read_text())) > 0


@pytest.mark.parametrize("bound", ["lazy", "now"])
def test_a_program_without_threads(bound: str, root: Root, tmp_path: Path, library: Path) -> None:
    """Nothing of it is linked with libpthread or libdl; the library brings them.  Every symbol is there."""
    source = tmp_path / "plain.c"
    source.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        'int main(void) {\n  char *text = malloc(100);\n  strcpy(text, "served");\n  puts(text);\n'
        "  free(text);\n  return 0;\n}\n"
    )
    made = root.build(source, tmp_path / "plain")
    variables = {"LD_BIND_NOW": "1"} if bound == "now" else {}
    step = run_clean([made], LD_PRELOAD=f"{library}:{library.with_name('libhakmem-fortify.so')}", **variables)
    assert (step.returncode, step.stdout, step.stderr) == (0, "served\n", "")
