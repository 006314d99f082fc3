"""Where the programs of the tests run: on this machine, or, with TARGET=aarch64, aarch64-16k or aarch64-64k
in the environment, in one that tests/aarch64 emulates, whose pages have 4, 16 or 64 KiB.

`NAME`          the target, '' for this machine
`MACHINE`       its processor, as platform.machine says it
`FOLDER`        below build/, where the library under test is
`command_of(…)` what a compiler of this machine is called that compiles for it
`run(cmd, …)`   runs a program on the machine, which is booted for the first
`skipped(path)` why a test is not for that machine; '' for those that are
"""

from __future__ import annotations

import atexit
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kernels.kernels import ROOT
from results import fetched

if TYPE_CHECKING:
    from aarch64.guest import Ended, Guest

PAGE_BYTES = {"": 4 << 10, "aarch64": 4 << 10, "aarch64-16k": 16 << 10, "aarch64-64k": 64 << 10}
NAME = os.environ.get("TARGET", "")
if NAME not in PAGE_BYTES:
    raise pytest.UsageError(f"TARGET={NAME}: the targets are {', '.join(filter(None, PAGE_BYTES))}")

FOLDER = "aarch64" if NAME else "."
MACHINE = "aarch64" if NAME else platform.machine()
TRIPLET = "aarch64-linux-gnu"
# Of what a program takes here: each instruction is emulated, and the machine is shared.
SLOWER = 20

if NAME:
    # Where both sides see it; the machine's own /tmp is its own, for what another file system does not have.
    TEMPORARY = ROOT / "build" / "aarch64" / "tmp"
    TEMPORARY.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(TEMPORARY)

TESTS = Path(__file__).resolve().parent
THERE = ("aarch64", "api", "concurrency", "crash", "failure", "glibc", "guard", "memory", "misuse", "unwind")
HERE = "programs that are not ours, the Python tool and other tools of this machine are tested on it alone"


not_there = pytest.mark.skipif(bool(NAME), reason=HERE)


def skipped(path: Path) -> str:
    if not NAME:
        return ""
    return "" if path.relative_to(TESTS).parts[0] in THERE else HERE


def command_of(compiler: str) -> list[str]:
    if not NAME or TRIPLET in compiler:
        return [compiler]
    return [compiler, f"--target={TRIPLET}"] if "clang" in compiler else [f"{TRIPLET}-{compiler}"]


@cache
def machine(page_bytes: int) -> Guest:
    from aarch64.guest import Guest, missing

    if tools := missing():
        pytest.skip(f"not installed: {tools}")
    guest = fetched("the parts of the machine", Guest, page_bytes)
    atexit.register(guest.end)
    return guest


def run(
    cmd: Sequence[str | Path],
    environment: Mapping[str, str],
    timeout: float,
    stdin: str | None = None,
    cwd: Path | None = None,
) -> Ended:
    there = dict(environment) | {"PATH": "/bin"}
    return machine(PAGE_BYTES[NAME]).run(cmd, there, timeout * SLOWER, stdin, cwd)
