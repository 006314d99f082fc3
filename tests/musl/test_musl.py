"""hakmem on another C library: built for musl, linked into static programs and preloaded into others.

Needs musl-tools; skipped without."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from modes import assert_silent
from preload import clean_environment, served
from results import captured

ROOT = Path(__file__).resolve().parents[2]
COMPILER = "musl-gcc"
FLAGS = ["-std=gnu17", "-O1", "-g", "-D_GNU_SOURCE", "-Isrc", "-Iinclude", "-Itests", "-fPIC", "-pthread"]
LIBRARY_FLAGS = "-DHAK_DEBUG=1 -fvisibility=hidden -ftls-model=initial-exec -Wall -Wextra -Werror".split()
NOT_BUILTIN = [f"-fno-builtin-{name}" for name in ("malloc", "calloc", "realloc", "free")]

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"not installed: {COMPILER}")

PROGRAMS: dict[str, list[str]] = {
    "api/alignment_natural.c": [],
    "api/realloc_content.c": [],
    "api/before_and_after_main.c": [],
    "concurrency/blocks_outlive_thread.c": [],
    "concurrency/fuzz.c": ["5", "4", "4", "10000"],
    "concurrency/fork_under_load.c": ["200", "_Fork"],
    "concurrency/helper_thread.c": ["setuid"],
}


def compile_with_musl(*words: str | Path) -> None:
    command = [COMPILER, *FLAGS, *map(str, words)]
    step = captured(command, cwd=ROOT, timeout=300)
    assert step.returncode == 0, step.stderr


@pytest.fixture(scope="session")
def kernel_headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian's musl has none of its own, and the folder they lie in has glibc's too."""
    folder = tmp_path_factory.mktemp("kernel")
    triplet = captured(["gcc", "-print-multiarch"], check=True).stdout.strip()
    for name, where in {"linux": "linux", "asm-generic": "asm-generic", "asm": f"{triplet}/asm"}.items():
        (folder / name).symlink_to(Path("/usr/include") / where)
    return folder


@pytest.fixture(scope="session")
def whole_object(kernel_headers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the library in one object, as libhakmem.a has it."""
    output = tmp_path_factory.mktemp("musl") / "hakmem.o"
    sources = sorted((ROOT / "src").glob("*/*.c"))
    flags = [*LIBRARY_FLAGS, *NOT_BUILTIN, "-idirafter", kernel_headers]
    compile_with_musl(*flags, "-nostdlib", "-r", "-o", output, *sources)
    return output


def run(command: Sequence[str | Path], report: Path, **environment: str) -> None:
    options = {"HAKMEM_STATS": f"json:{report}"} | environment
    assert_silent(captured(command, env=clean_environment() | options, timeout=120))
    assert served(json.loads(report.read_text())) > 0


@pytest.mark.long("3 seconds each; each program, linked once more")
@pytest.mark.parametrize("program", PROGRAMS)
def test_static_program(program: str, whole_object: Path, tmp_path: Path) -> None:
    binary = tmp_path / "program"
    compile_with_musl("-static", "-fno-builtin", f"tests/{program}", whole_object, "-o", binary)
    run([binary, *PROGRAMS[program]], tmp_path / "report.json")


def test_static_program_with_operators_of_its_own(whole_object: Path, tmp_path: Path) -> None:
    binary = tmp_path / "program"
    flags = ["-std=gnu++17", "-nostdinc++", "-fno-exceptions", "-fno-rtti", "-Wno-sized-deallocation"]
    source = "tests/exotic/bare_operators.cc"
    compile_with_musl("-static", "-fno-builtin", *flags, source, whole_object, "-o", binary)
    run([binary], tmp_path / "report.json")


@pytest.mark.long("a second each", keep=2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_preloaded(program: str, whole_object: Path, tmp_path: Path) -> None:
    library, binary = whole_object.with_name("libhakmem.so"), tmp_path / "program"
    if not library.exists():
        script = f"-Wl,--version-script={ROOT / 'src/api/hakmem.map'}"
        compile_with_musl("-shared", "-Wl,-z,now,-z,nodelete", script, whole_object, "-o", library)
    compile_with_musl("-fno-builtin", f"tests/{program}", "-o", binary)
    run([binary, *PROGRAMS[program]], tmp_path / "report.json", LD_PRELOAD=str(library))
