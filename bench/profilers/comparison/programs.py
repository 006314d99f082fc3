"""The leaking programs, and the true shares of their sites.

The bytes that each site leaks in a turn are read from the program's source, their only place."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .places import PROGRAMS, WORK

# (site, bytes, count), by the end of the file's name.
SITES = {
    ".cc": r"SITE\(\d+, +(\w+), +(\d+), +(\d+),",
    ".rs": r"^    site_(\w+) (\d+) (\d+)$",
    ".py": r"def site_(\w+)\(\) -> None:\n.*bytes_of\((\d+)\) for _ in range\((\d+)\)",
    ".js": r"function site_(\w+)\(\) \{ keep\((\d+), (\d+)\); \}",
}


@dataclass(frozen=True)
class Program:
    """A program on its own; a tool may start it with other options."""

    name: str
    source: Path
    turns: int  # of work, so that it takes a second
    words: list[str]
    # Options and variables with which code that is compiled while it runs, and objects in arenas, are seen
    # by profilers of malloc.
    telling_words: list[str] = field(default_factory=list)
    telling_environment: dict[str, str] = field(default_factory=dict)
    missing: str = ""

    @property
    def shares(self) -> dict[str, float]:
        """Each site's share of all leaked bytes."""
        rows = re.findall(SITES[self.source.suffix], self.source.read_text(), re.MULTILINE)
        leaked = {name: int(size) * int(count) for name, size, count in rows}
        whole = sum(leaked.values())
        return {name: value / whole for name, value in leaked.items()}

    def telling(self) -> list[str]:
        return self.telling_words or self.words


def programs() -> list[Program]:
    """All four; those that cannot be built say why."""
    return [cxx_program(), python_program(), rust_program(), node_program()]


def built(compiler: str, source: Path, *options: str) -> tuple[Path, str]:
    """The program, and why there is none."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / source.name.replace(".", "_")
    if shutil.which(compiler) is None:
        return path, f"{compiler} is not installed"
    step = subprocess.run(
        [compiler, *options, str(source), "-o", str(path)], capture_output=True, text=True, check=False
    )
    return path, f"{compiler}: {step.stderr[:200]}" if step.returncode else ""


def cxx_program() -> Program:
    source = PROGRAMS / "leak.cc"
    path, missing = built("g++", source, "-O2", "-g", "-fno-optimize-sibling-calls")
    return Program("C++", source, 2000, [str(path)], missing=missing)


def rust_program() -> Program:
    source = PROGRAMS / "leak.rs"
    path, missing = built("rustc", source, "-O", "-g", "--edition=2021")
    return Program("Rust", source, 2000, [str(path)], missing=missing)


@cache
def newest_python() -> str | None:
    """3.12 and newer can tell profilers the names of functions (-X perf)."""
    for minor in (14, 13, 12):
        candidates = [shutil.which(f"python3.{minor}")]
        candidates += map(str, sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")))
        for path in filter(None, candidates):
            # A shim of pyenv exists for versions that are not chosen, too.
            if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
                return path
    return None


@cache
def python_with(package: str) -> Path | None:
    """An environment of the newest Python with the package, made when it is first asked for."""
    folder, python = WORK / f"venv-{package}", newest_python()
    inside = folder / "bin" / "python"
    if python is None:
        return None
    if not inside.exists():
        subprocess.run([python, "-m", "venv", str(folder)], capture_output=True, check=False)
        words = [str(inside), "-m", "pip", "install", "-q", package]
        subprocess.run(words, capture_output=True, check=False)
    found = subprocess.run([str(inside), "-c", f"import {package}"], capture_output=True, check=False)
    return inside if found.returncode == 0 else None


def python_program() -> Program:
    """In the environment of memray, which attaches only to a process that can import it."""
    source, python = PROGRAMS / "leak.py", str(python_with("memray") or newest_python() or "")
    return Program(
        "Python",
        source,
        600,
        [python, str(source)],
        [python, "-X", "perf", str(source)],
        {"PYTHONMALLOC": "malloc"},
        "" if python else "no Python 3.12 or newer",
    )


def node_program() -> Program:
    source, node = PROGRAMS / "leak.js", shutil.which("node")
    return Program(
        "node",
        source,
        800,
        [node or "", str(source)],
        [node or "", "--perf-basic-prof", "--interpreted-frames-native-stack", str(source)],
        missing="" if node else "node is not installed",
    )
