"""Compilers on hakmem: the object code has to be that of a run without, byte by byte.

gcc and g++ compile hakmem's own sources.  g++ and clang++ compile one C++ file that takes a compiler much
memory; the program that comes of it then runs on hakmem itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from real.sides import Side, Sides

LARGE = Path(__file__).parent / "programs" / "large.cpp"
OWN_SOURCES = {".c": ("gcc", "-std=gnu17"), ".cc": ("g++", "-std=gnu++17")}
PROCESSES = {"gcc": 3, "g++": 3, "clang++": 1}  # gcc's driver, compiler and assembler; clang is all three
AT_A_TIME = 2


def test_own_sources(sides: Sides, program: Callable[[str], Path], root: Path) -> None:
    sources = sorted(path for suffix in OWN_SOURCES for path in (root / "src").rglob(f"*{suffix}"))
    assert {source.suffix for source in sources} == set(OWN_SOURCES), "hakmem is C and its operator new C++"
    includes = [f"-I{root / 'src'}", f"-I{root / 'include'}"]

    def job(side: Side) -> dict[Path, str]:
        def compile_one(source: Path) -> str:
            name, standard = OWN_SOURCES[source.suffix]
            target = side.folder / f"{source.parent.name}-{source.stem}.o"
            command = [program(name), standard, "-O2", "-fPIC", *includes, "-c", source, "-o", target]
            side.run(command, processes=PROCESSES[name])
            return digest(target)

        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return dict(zip(sources, pool.map(compile_one, sources), strict=True))

    sides.same(job)


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_large_cxx_file(sides: Sides, program: Callable[[str], Path], name: str) -> None:
    compiler = program(name)

    def job(side: Side) -> tuple[str, str]:
        compile_it = [compiler, "-std=c++20", "-O2", "-pthread", "-c", LARGE, "-o", "large.o"]
        side.run(compile_it, processes=PROCESSES[name])
        side.run([compiler, "-pthread", "large.o", "-o", "large"], processes=2)
        return digest(side.folder / "large.o"), side.run([side.folder / "large"]).stdout

    _, output = sides.same(job)
    assert int(output, 16) > 0


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
