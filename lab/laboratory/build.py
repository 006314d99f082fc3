"""Building the load with all its strategies: one program, plain `cc -O2`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
REPOSITORY = LAB.parent
OUTPUT = REPOSITORY / "build" / "lab"
SUPPORT = REPOSITORY / "bench" / "support"  # arguments, random numbers, clock: shared with the benchmarks
FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-pthread"]


class BuildError(Exception):
    """The program could not be built; the text is the compiler's."""


def _sources() -> list[Path]:
    own = [LAB / "larson.c", *LAB.glob("core/*.c"), *LAB.glob("strategies/*.c")]
    return [*sorted(own), SUPPORT / "args.c", SUPPORT / "measure.c"]


def _inputs() -> list[Path]:
    headers = [*LAB.glob("core/*.h"), *LAB.glob("core/*.def"), *LAB.glob("strategies/*.h")]
    return [*_sources(), *headers, *SUPPORT.glob("*.h"), Path(__file__)]


def build(name: str = "lab", *flags: str) -> Path:
    """build/lab/NAME, compiled with `flags` beside the usual ones, anew when any source is younger."""
    executable = OUTPUT / name
    if executable.exists() and all(i.stat().st_mtime <= executable.stat().st_mtime for i in _inputs()):
        return executable
    OUTPUT.mkdir(parents=True, exist_ok=True)
    # Built beside and renamed: an interrupted compiler leaves no half program that looks up to date.
    unfinished = OUTPUT / f".{name}.{os.getpid()}"
    words = [os.environ.get("CC", "cc"), *FLAGS, *flags, f"-I{LAB}", f"-I{SUPPORT}"]
    words += [*map(str, _sources()), "-o", str(unfinished)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"no C compiler: {error}") from error
    if done.returncode != 0:
        raise BuildError(done.stderr)
    unfinished.replace(executable)
    return executable
