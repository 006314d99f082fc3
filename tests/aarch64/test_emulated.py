"""hakmem compiled for aarch64, and a few of its programs run on it by qemu's user emulation: what differs by
architecture, in little time.  `make test-aarch64` runs all of them, on real kernels.

Pages of 16 and 64 KiB are the emulator's word (-p), with this machine's kernel below.  In 8.2 (Ubuntu 24.04)
no program with such pages can preload anything; to newer ones the word means nothing.  Needs
gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static; skipped where one is missing."""

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import target
from aarch64 import packages
from kernels.kernels import ROOT, CannotFetchError
from preload import served
from results import captured

COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O1", "-pthread", "-fno-builtin", "-Itests", "-Iinclude"]
BUILD = ROOT / "build" / "aarch64" / "debug"
SMALL_PAGES, LARGE_PAGES = 4 << 10, (16 << 10, 64 << 10)

missing = [tool for tool in (COMPILER, EMULATOR[0]) if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}"),
    target.not_there,
]

GUARDED = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
PROGRAMS: dict[str, tuple[list[str], dict[str, str]]] = {
    "api/alignment_natural.c": ([], {}),
    "api/realloc_content.c": ([], {}),
    "api/usable_size.c": ([], {}),
    "concurrency/fuzz.c": (["4", "2", "3", "10000"], {}),
    "guard/clean.c": ([], GUARDED),
}
RUNS = [(program, SMALL_PAGES) for program in PROGRAMS]
RUNS += [(f"{name}.c", size) for name in ("concurrency/fuzz", "api/usable_size") for size in LARGE_PAGES]
# The emulator is in no one's way there: it ignores advice, and says of processes that they were killed.
UNITS = ("bits", "bytes", "metadata", "object", "scan", "size_class", "text", "unwind_table")


def build(*targets: str) -> None:
    """With the unit tests, where their library can be had."""
    for words in (["cmake", "--preset", "aarch64-debug"], ["cmake", "--build", BUILD, "--target", *targets]):
        command = [str(word) for word in words]
        step = captured(command, cwd=ROOT, timeout=280)
        assert step.returncode == 0, step.stdout[-3000:] + step.stderr[-3000:]


@pytest.fixture(scope="module")
def why_no_units() -> str:
    try:
        packages.root()
    except CannotFetchError as error:
        return f"libcmocka for arm64 cannot be had: {error}"
    return ""


@pytest.fixture(scope="module")
def library(why_no_units: str) -> Path:
    build("hakmem", *([] if why_no_units else [f"test_{name}" for name in UNITS]))
    return BUILD / "libhakmem.so"


def faults_said(step: subprocess.CompletedProcess[str]) -> str:
    return "\n".join(line for line in step.stderr.splitlines() if "page size option" not in line)


@pytest.fixture(scope="module")
def why_no_pages_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """What goes wrong with such pages where nothing is hakmem's."""
    program = str(tmp_path_factory.mktemp("pages") / "empty")
    library = f"LD_PRELOAD={EMULATOR[2]}/lib/libm.so.6"

    @cache
    def why(page_bytes: int) -> str:
        text = "int main(void) { return 0; }"
        subprocess.run([COMPILER, "-o", program, "-xc", "-"], input=text, text=True, check=True, timeout=120)
        words = [*EMULATOR, "-p", str(page_bytes), "-E", library, program]
        step = captured(words, timeout=60)
        return faults_said(step) or ("" if step.returncode == 0 else f"it ended with {step.returncode}")

    return why


@pytest.mark.long("5 seconds under emulation each")
@pytest.mark.parametrize(("program", "page_bytes"), RUNS)
def test_program(
    program: str, page_bytes: int, library: Path, why_no_pages_of: Callable[[int], str], tmp_path: Path
) -> None:
    if page_bytes in LARGE_PAGES and (why := why_no_pages_of(page_bytes)):
        pytest.skip(f"{EMULATOR[0]} has no pages of {page_bytes} bytes: {why}")
    binary, report = tmp_path / "program", tmp_path / "report.json"
    command = [COMPILER, *FLAGS, "-o", str(binary), f"tests/{program}"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    arguments, options = PROGRAMS[program]
    options = options | {"LD_PRELOAD": str(library), "HAKMEM_STATS": f"json:{report}"}
    words = [*EMULATOR, "-p", str(page_bytes)]
    words += [word for name, value in options.items() for word in ("-E", f"{name}={value}")]
    result = captured([*words, str(binary), *arguments], timeout=250)
    assert (result.returncode, faults_said(result)) == (0, "")
    assert served(json.loads(report.read_text())) > 0


@pytest.mark.parametrize("name", UNITS)
def test_unit(name: str, library: Path, why_no_units: str) -> None:
    if why_no_units:
        pytest.skip(why_no_units)
    words = [*EMULATOR, str(library.parent / "unit" / f"test_{name}")]
    result = captured(words, timeout=250)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
