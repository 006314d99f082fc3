"""Misses of a simulated data TLB in the real programs: most virtual machines do not count the real ones.

bench/real/tlb_tool.c, a tool for valgrind, follows every data access.  At each walk of the page tables it
asks the kernel for the size of the page in the running process, so huge pages count where there are any.
The figures are for a million instructions of the same job on glibc, so that an allocator's own instructions
do not make its figure smaller.

They do not tell time: a walk takes from ten cycles to more than a hundred, and processors that execute out of
order hide a part of it.  Left out are fetched instructions, which share the second level, the kernel's own
accesses, prefetching, and the entries that other processes, purges and changes of a page's size drop.  All
threads share one TLB.  Allocators that reserve more than valgrind's address space do not run (snmalloc)."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from .allocators import Allocator
from .build import VALGRIND, compile_anew, with_slow_clock
from .counting import Count, Row, Tell
from .execute import RunError
from .paths import OUTPUT, REAL
from .real_program import CommandProgram, find_program
from .workload import Length

ROOT = Path("/")
TOOLS = ("usr/libexec/valgrind", "usr/lib/*/valgrind", "usr/lib/valgrind")
FLAGS = (
    "-std=gnu17 -O2 -fno-stack-protector -fno-builtin -fno-pie -fcf-protection=none "
    "-no-pie -static -nostdlib -nostartfiles -Wl,--build-id=none"
)
FIGURES = {"walks": "walks", "L1": "l1_misses"}


@cache
def _installed() -> dict[str, str] | None:
    """The variables of valgrind's package file, and the folder of its tools."""
    for path in ROOT.glob("usr/lib/*/pkgconfig/valgrind.pc"):
        found = dict(re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE))
        core = path.parents[1] / "valgrind" / f"libcoregrind-{found['platform']}.a"
        for folder in (each for pattern in TOOLS for each in ROOT.glob(pattern)):
            if core.exists() and (folder / f"lackey-{found['platform']}").exists():
                return {**found, "libraries": str(core.parent), "tools": str(folder)}
    return None


def missing() -> str:
    if find_program("valgrind") and _installed():
        return ""
    return "valgrind with its libraries for tools is not installed: Debian package valgrind"


@cache
def build_tool() -> Path:
    """The folder that valgrind finds its tools in."""
    found = _installed()
    assert found is not None
    platform = found["platform"]
    folder = OUTPUT / "valgrind"
    folder.mkdir(parents=True, exist_ok=True)
    for each in Path(found["tools"]).iterdir():
        if not (folder / each.name).exists():
            (folder / each.name).symlink_to(each)
    macros = f"VGA_{found['arch']} VGO_{found['os']} VGP_{platform} VGPV_{platform}_vanilla".replace("-", "_")
    flags = [*FLAGS.split(), *(f"-D{macro}=1" for macro in macros.split()), "-I/usr/include/valgrind"]
    flags += [f"-Wl,-Ttext-segment={found['valt_load_address']}"]
    libraries = [f"-L{found['libraries']}", f"-lcoregrind-{platform}", f"-lvex-{platform}", "-lgcc"]
    inputs = [REAL / "tlb_tool.c", REAL / "tlb.h", Path(__file__)]
    compile_anew(folder / f"tlb-{platform}", inputs, flags, libraries)
    return folder


def counts_of(program: CommandProgram, allocator: Allocator, size: int) -> Counter[str]:
    """Sums over the processes of the job.  Raises RunError."""
    with tempfile.TemporaryDirectory(prefix="hakmem-tlb-") as folder:
        wrapper = (*VALGRIND, "--tool=tlb", f"--log-file={folder}/%p")
        variables = with_slow_clock(allocator.preload, allocator.library)
        variables["VALGRIND_LIB"] = str(build_tool())
        program.run(allocator, size, variables, wrapper)
        found: Counter[str] = Counter()
        for path in Path(folder).iterdir():
            for name, count in re.findall(r"(\w+)=(\d+)", path.read_text(errors="replace")):
                found[name] += int(count)
    if found["failures"]:
        raise RunError("the kernel does not say how large pages are: Linux 6.7 is the first that does")
    return found


def count_rows(
    program: CommandProgram, allocators: Sequence[Allocator], length: Length, tell: Tell
) -> list[Row]:
    program.prepare(length)
    glibc = next(each for each in allocators if each.library is None)
    first = counts_of(program, glibc, program.size(length))
    found: dict[str, Counter[str] | None] = {}
    for allocator in allocators:
        try:
            found[allocator.name] = (
                first if allocator is glibc else counts_of(program, allocator, program.size(length))
            )
        except RunError as error:
            found[allocator.name] = None
            tell(f"{program.name}, {allocator.name}: {error}")
    million = first["instructions"] / 1e6
    return [
        Row(
            f"{program.name} {label}",
            round(million),
            {name: None if counts is None else counts[key] / million for name, counts in found.items()},
        )
        for label, key in FIGURES.items()
    ]


COUNT = Count(
    title="Page walks, first-level misses of a simulated data TLB, in a million instructions of glibc's run",
    base="instructions (M)",
    tool="a simulated TLB",
    missing=missing,
    rows=count_rows,
)
