"""hakmem compiled for aarch64, and its behaviour programs run on it by qemu's user emulation.

Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static; skipped where one is missing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from preload import served

ROOT = Path(__file__).resolve().parents[2]
COMPILER = "aarch64-linux-gnu-gcc"
EMULATOR = "qemu-aarch64-static"
SYSROOT = Path("/usr/aarch64-linux-gnu")
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Isrc", "-Iinclude", "-fvisibility=hidden", "-fPIC", "-pthread"]
LIBRARY_FLAGS = ["-O1", "-g", "-DHAK_DEBUG=1", "-ftls-model=initial-exec", "-Wall", "-Wextra", "-Werror"]
NOT_BUILTIN = [f"-fno-builtin-{name}" for name in ("malloc", "calloc", "realloc", "free")]

missing = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}")

PROGRAMS: dict[str, list[str]] = {
    "api/alignment_power_of_two.c": [],
    "api/realloc_content.c": [],
    "api/usable_size.c": [],
    "concurrency/fuzz.c": ["4", "2", "3", "10000"],
}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aarch64")
    found = (ROOT / "src").glob("*/*.c")
    sources = sorted(path for path in found if path.parent.name != "fortify")
    output = folder / "libhakmem.so"
    script = f"-Wl,--version-script={ROOT / 'src/api/hakmem.map'}"
    command = [COMPILER, *FLAGS, *LIBRARY_FLAGS, *NOT_BUILTIN, "-shared", script, "-o", output, *sources]
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True, timeout=300)
    return output


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str, library: Path, tmp_path: Path) -> None:
    binary, report = tmp_path / "program", tmp_path / "report.json"
    command = [COMPILER, *FLAGS, "-O1", "-Itests", "-o", str(binary), f"tests/{program}"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    emulator = [EMULATOR, "-L", str(SYSROOT), "-E", f"LD_PRELOAD={library}"]
    emulator += ["-E", f"HAKMEM_STATS=json:{report}", str(binary), *PROGRAMS[program]]
    result = subprocess.run(emulator, capture_output=True, text=True, timeout=300, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert served(json.loads(report.read_text())) > 0
