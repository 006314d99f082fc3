"""`program(source, *flags, compiler=…)`: a program of this folder with the unwinder in it."""

import subprocess
from pathlib import Path

import pytest
import target
from results import Compile

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SRC = ROOT / "src"
SOURCES = [
    *sorted((SRC / "stack").glob("unwind*.c")),
    *sorted((SRC / "os").glob("*.c")),
    *sorted((SRC / "base").glob("*.c")),
]
FLAGS = ("-D_GNU_SOURCE", "-DHAK_DEBUG=0", f"-I{SRC}", "-pthread", "-fPIC", "-fvisibility=hidden")


def build_unwinder(folder: Path, compiler: str, *flags: str | Path) -> Path:
    """Its objects in one archive, optimised as in the product."""
    archive = folder / "libunwinder.a"
    for source in SOURCES:
        words = [*target.command_of(compiler), "-std=gnu17", "-O2", "-g", *FLAGS, *flags]
        words += ["-c", source, "-o", folder / f"{source.stem}.o"]
        subprocess.run([str(word) for word in words], check=True, timeout=120)
    objects = [str(path) for path in sorted(folder.glob("*.o"))]
    subprocess.run(["ar", "rcs", str(archive), *objects], check=True, timeout=60)
    return archive


@pytest.fixture(scope="session")
def unwinder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_unwinder(tmp_path_factory.mktemp("unwinder"), "gcc")


@pytest.fixture(scope="session")
def program(compile_c: Compile, unwinder: Path) -> Compile:
    """The unwinder is gcc's; the program, whose frames it reads, is made by what the test asks for."""

    def make(source: str, *flags: str | Path, compiler: str = "gcc") -> Path:
        return compile_c(HERE / source, *FLAGS, *flags, unwinder, "-lm", compiler=compiler)

    return make
