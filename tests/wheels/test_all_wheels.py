"""The wheels of the other platforms, and the source distribution: built, and used where they are for.

Minutes: `make test-wheels` runs them, `make test` does not."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from hakmem import __version__
from preload import run_clean, served
from wheels.conftest import Environment, built, make_environment

TESTS = Path(__file__).resolve().parents[1]
PROGRAM = TESTS / "concurrency" / "blocks_outlive_thread.c"
FLAGS = ["-std=gnu17", "-O1", "-pthread", "-fno-builtin", f"-I{TESTS}", f"-I{TESTS.parent / 'include'}"]
AARCH64_ROOT = "/usr/aarch64-linux-gnu"
TAGS = {
    "manylinux-aarch64": "manylinux_2_28_aarch64",
    "musllinux-x86_64": "musllinux_1_2_x86_64",
    "musllinux-aarch64": "musllinux_1_2_aarch64",
}
MUSL_AARCH64 = TESTS.parent / "build" / "musl-aarch64"  # of scripts/musl-gcc-aarch64

pytestmark = [
    pytest.mark.skipif(os.environ.get("WHEELS") != "all", reason="takes minutes: make test-wheels"),
    pytest.mark.timeout(1200),
]


def compiled(compiler: str, folder: Path) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    program = folder / "program"
    subprocess.run([compiler, *FLAGS, str(PROGRAM), "-o", str(program)], check=True)
    return program


def unpacked(wheel: Path, folder: Path) -> Path:
    """Its library."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "hakmem" / "lib" / "libhakmem.so"


@pytest.mark.parametrize("name", TAGS)
def test_its_name_and_its_bytes(name: str, tmp_path: Path) -> None:
    wheel, again = built(tmp_path / "one", name), built(tmp_path / "two", name)
    assert wheel.name == f"hakmem-{__version__}-py3-none-{TAGS[name]}.whl"
    assert wheel.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("name", ["manylinux-aarch64", "musllinux-aarch64"])
def test_aarch64(name: str, tmp_path: Path) -> None:
    """Emulated, on Debian's glibc and musl for it."""
    library, report = unpacked(built(tmp_path, name), tmp_path), tmp_path / "report.json"
    is_musl = name.startswith("musl")
    compiler = MUSL_AARCH64 / "bin" / "aarch64-linux-musl-gcc" if is_musl else "aarch64-linux-gnu-gcc"
    program = compiled(str(compiler), tmp_path)
    root = MUSL_AARCH64 / "root" if is_musl else AARCH64_ROOT
    words = ["qemu-aarch64-static", "-L", root, "-E", f"LD_PRELOAD={library}"]
    step = run_clean([*words, "-E", f"HAKMEM_STATS=json:{report}", program], timeout_s=300)
    assert (step.returncode, step.stderr) == (0, "")
    assert served(json.loads(report.read_text())) > 0


def test_musl(tmp_path: Path, installed: Environment) -> None:
    """A program of musl's is launched on that wheel's library; one of glibc's is refused in a sentence."""
    program = compiled("musl-gcc", tmp_path)
    library, report = unpacked(built(tmp_path, "musllinux-x86_64"), tmp_path), tmp_path / "report.json"
    named = {"HAKMEM_LIBRARY": str(library)}
    installed("hakmem", "run", "--env", f"HAKMEM_STATS=json:{report}", "--", program, variables=named)
    assert served(json.loads(report.read_text())) > 0
    refused = installed("hakmem", "run", "--", "true", variables=named, status=126)
    assert f"runs on glibc, {library} was built for musl" in refused.stderr


def test_source_distribution(tmp_path: Path) -> None:
    """pip builds the library, where no wheel fits; the bytes are the same twice."""
    packed, again = built(tmp_path / "one", "sdist"), built(tmp_path / "two", "sdist")
    assert packed.name == f"hakmem-{__version__}.tar.gz"
    assert packed.read_bytes() == again.read_bytes()
    made, report = make_environment(tmp_path / "venv"), tmp_path / "report.json"
    made.pip("install", "-q", "--no-index", "--no-build-isolation", packed)
    made("hakmem", "run", "--env", f"HAKMEM_STATS=json:{report}", "--", "python", "-c", "pass")
    assert served(json.loads(report.read_text())) > 0
    assert made("hakmem", "run", "--library").stdout.startswith(str(made.packages))
