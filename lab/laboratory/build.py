"""Building the load with all its strategies: one program, plain `cc -O2`."""

from __future__ import annotations

from pathlib import Path

from harness.build import compile_anew

LAB = Path(__file__).resolve().parent.parent
REPOSITORY = LAB.parent
OUTPUT = REPOSITORY / "build" / "lab"
SUPPORT = REPOSITORY / "bench" / "support"  # arguments, random numbers, clock: shared with the benchmarks
FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-pthread"]


def _inputs() -> list[Path]:
    own = [LAB / "larson.c", *LAB.glob("core/*"), *LAB.glob("strategies/*")]
    return [*own, SUPPORT / "args.c", SUPPORT / "measure.c", *SUPPORT.glob("*.h"), Path(__file__)]


def build(name: str = "lab", *flags: str) -> Path:
    """build/lab/NAME, compiled with `flags` beside the usual ones, anew when any source is younger."""
    return compile_anew(OUTPUT / name, _inputs(), [*FLAGS, *flags, f"-I{LAB}", f"-I{SUPPORT}"])
