"""The instructions of refills and flushes, counted by callgrind over tests/shape/batches.c."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from fast_path import ROOT, build, compiler_version

PROGRAM = ROOT / "tests" / "shape" / "batches.c"
GOLDEN = ROOT / "tests" / "shape" / "batches.golden"
FUNCTIONS = ("batch_refill", "batch_flush")
# As in the program.
ROUNDS, SMALL_BLOCKS, OTHER_BLOCKS, SMALL_BYTES = 6, 20000, 1000, 1024
LOADS = (("64", "ordered"), ("64", "shuffled"), ("4096", "ordered"), ("4096", "shuffled"))
# Nothing that depends on the time.
QUIET = {"HAKMEM_DECAY_MS": "86400000", "HAKMEM_HELPER_THREAD": "0"}
HEADING = """\
# Instructions in refills and in flushes for each block of tests/shape/batches.c, in hundredths, written by
# scripts/golden --update.
"""


def cost_of(profile: str, function: str) -> int:
    """Instructions of all calls, those below them included."""
    instructions = 0
    callee, is_cost = "", False
    for line in profile.splitlines():
        if line.startswith("cfn="):
            callee = line.removeprefix("cfn=")
        elif line.startswith("calls=") and callee == function:
            is_cost = True
        elif is_cost:
            instructions += int(line.split()[-1])
            is_cost = False
    return instructions


def count(library: Path, program: Path, load: tuple[str, str], folder: Path) -> list[float]:
    profile = folder / "profile"
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--compress-strings=no"]
    environment = os.environ | QUIET | {"LD_PRELOAD": str(library)}
    command = [*words, str(program), *load]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    blocks = ROUNDS * (SMALL_BLOCKS if int(load[0]) <= SMALL_BYTES else OTHER_BLOCKS)
    return [cost_of(profile.read_text(), function) * 100 / blocks for function in FUNCTIONS]


def measure() -> dict[tuple[str, str], list[float]]:
    """Instructions of each load, in the order of FUNCTIONS; by the library that gcc makes."""
    library = build("gcc")
    with tempfile.TemporaryDirectory() as name:
        folder, program = Path(name), Path(name) / "batches"
        subprocess.run(["gcc", "-O1", "-o", program, PROGRAM], check=True)
        return {load: count(library, program, load, folder) for load in LOADS}


def heading() -> str:
    columns = "".join(f"{name:>14}" for name in FUNCTIONS)
    return f"gcc {compiler_version('gcc'):<16}{columns}"


def describe() -> str:
    """The golden file."""
    rows = [
        f"{' '.join(load):<20}" + "".join(f"{cost:>14.0f}" for cost in costs)
        for load, costs in measure().items()
    ]
    return "\n".join([HEADING, heading(), *rows]) + "\n"


def read() -> dict[tuple[str, str], list[float]]:
    """The figures of the golden file."""
    found = re.findall(r"^(\d+) (\w+) +(\d+) +(\d+)$", GOLDEN.read_text(), re.MULTILINE)
    return {(size, order): [float(refill), float(flush)] for size, order, refill, flush in found}
