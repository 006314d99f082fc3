"""Compilers on hakmem: the object code has to be that of a run without, byte by byte.

gcc and g++ compile hakmem's own sources.  g++ and clang++ compile one C++ file that takes a compiler much
memory; the program that comes of it then runs on hakmem itself."""

import hashlib
import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from real.sides import Side, Sides
from results import Find

LARGE = Path(__file__).parent / "programs" / "large.cpp"
OWN_LANGUAGES = {".c": "gcc", ".cc": "g++"}
PROCESSES = {"gcc": 3, "g++": 3, "clang++": 1}  # gcc's driver, compiler and assembler; clang is all three
AT_A_TIME = 2


@dataclass(frozen=True)
class Compilation:
    """How the build compiles one of hakmem's sources."""

    source: Path
    folder: Path
    flags: tuple[str, ...]


def own_compilations(root: Path) -> list[Compilation]:
    """What CMake wrote down, less the compiler's name and the output."""
    entries = json.loads((root / "build" / "compile_commands.json").read_text())
    found = []
    for entry in entries:  # no two of one file: the release tree compiles each source once
        words = shlex.split(entry["command"])
        output = words.index("-o")
        flags = words[1:output] + words[output + 2 :]
        found.append(Compilation(Path(entry["file"]), Path(entry["directory"]), tuple(flags)))
    return found


@pytest.mark.long("what `make run` does")
def test_own_sources(sides: Sides, program: Find, root: Path) -> None:
    compilations = own_compilations(root)
    assert any(each.source.suffix == ".c" for each in compilations)

    def job(side: Side) -> dict[Path, str]:
        def compile_one(each: Compilation) -> str:
            name = OWN_LANGUAGES[each.source.suffix]
            target = side.folder / f"{each.source.parent.name}-{each.source.stem}.o"
            side.run([program(name), *each.flags, "-o", target], cwd=each.folder, processes=PROCESSES[name])
            return digest(target)

        with ThreadPoolExecutor(AT_A_TIME) as pool:
            digests = pool.map(compile_one, compilations)
            return {each.source: made for each, made in zip(compilations, digests, strict=True)}

    sides.same(job)


CLANG = pytest.param("clang++", marks=pytest.mark.long("the slower of two compilers"))


@pytest.mark.long("15 seconds; make run compiles as much")
@pytest.mark.parametrize("name", ["g++", CLANG])
def test_large_cxx_file(sides: Sides, program: Find, name: str) -> None:
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
