"""Counts of a real program's cost on each allocator: they show more than time on a noisy machine.

The same input gives the same count on any machine within a hundredth.  What counts as the allocator's are the
instructions in its libraries, of glibc those in the functions of malloc; memcpy and memset count as the
program's for all.  A call is one malloc, calloc, realloc or aligned allocation, with its free.  Misses of
simulated caches (CACHES) are those of the whole program, for each call, as an allocator also decides how far
apart the program's own data lie.  Page faults and system calls are those of a quick job outside of callgrind;
their base is glibc's count.

Not for programs whose children end without exec: there callgrind repeats their parents' counts."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .allocators import Allocator
from .build import VALGRIND, with_slow_clock
from .counting import Count, Row, Tell
from .execute import RunError
from .real_program import CommandProgram, find_program
from .workload import Length

LIBC = "libc.so.6"
OF_MALLOC = re.compile(
    r"(?:__)?(?:libc_)?(?:malloc|free|cfree|calloc|realloc|reallocarray|memalign|valloc|pvalloc|aligned_alloc|posix_memalign)"
    r"|_int_(?:malloc|free|realloc|memalign)\w*|_mid_memalign|(?:malloc|tcache|ptmalloc|arena|heap|alloc)_\w+"
    r"|sysmalloc\w*|systrim\w*|unlink_chunk|(?:munmap|mremap)_chunk|(?:new|delete)_heap|int_mallinfo|free_perturb"
)
ALLOCATING = {
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "valloc",
    "pvalloc",
    "aligned_alloc",
    "posix_memalign",
}
CACHES = "--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64".split()
MISSES = {"D1 misses": ("D1mr", "D1mw"), "LL misses": ("ILmr", "DLmr", "DLmw")}
STRACE = ("strace", "-f", "-qq", "-c", "-o")


@dataclass
class Profile:
    """Each function's own instructions, by file and name, how often each was called, and sums by event."""

    own: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)


def _is_allocating(file: str, function: str) -> bool:
    return Path(file).name == LIBC and plain(function) in ALLOCATING


def read_profile(text: str, into: Profile) -> None:
    """Adds one file of callgrind's (its manual, "Callgrind Format Specification")."""
    names: dict[tuple[str, str], str] = {}
    here = {"ob": "", "fn": ""}
    callee: tuple[str, str] = ("", "")
    is_of_callee = False

    def name_of(kind: str, value: str) -> str:
        number, _, name = value.partition(" ")
        if name:
            names[kind, number] = name
        return names.get((kind, number), value)

    events, *lines = text.partition("\nevents:")[2].splitlines()
    for line in lines:
        if line and line[0] in "0123456789+-*":
            if not is_of_callee:
                into.own[here["ob"], here["fn"]] += int(line.split()[1])
            is_of_callee = False
            continue
        if line.startswith("totals:"):
            into.sums.update(dict(zip(events.split(), map(int, line.split()[1:]), strict=False)))
        key, _, value = line.partition("=")
        if key in ("ob", "fn"):
            here[key] = name_of(key, value)
            callee = (here["ob"], "")
        elif key == "cob":
            callee = (name_of("ob", value), "")
        elif key == "cfn":
            callee = (callee[0] or here["ob"], name_of("fn", value))
        elif key == "calls":
            if not _is_allocating(here["ob"], here["fn"]):  # realloc(NULL, size) calls malloc
                into.calls[callee] += int(value.split()[0])
            is_of_callee, callee = True, (here["ob"], "")


def profile_of(program: CommandProgram, allocator: Allocator, *, caches: bool = False) -> Profile:
    """Runs a tenth of the quick work.  Raises RunError."""
    code = allocator.library.read_bytes() if allocator.library else b""
    if b".text.first" in code and b".symtab" not in code:
        raise RunError(f"{allocator.library} has no symbols, by which its functions are known")
    found = Profile()
    with tempfile.TemporaryDirectory(prefix="hakmem-callgrind-") as folder:
        tool = ("--tool=callgrind", *(CACHES if caches else ()), f"--callgrind-out-file={folder}/%p")
        variables = with_slow_clock(allocator.preload, allocator.library)
        program.run(allocator, program.proof_size(), variables, (*VALGRIND, *tool))
        for path in Path(folder).iterdir():
            read_profile(path.read_text(errors="replace"), found)
    return found


def plain(function: str) -> str:
    """Without a version, the number of a recursion, or the name of a part that the compiler split off."""
    return re.split(r"[@'.]", function, maxsplit=1)[0]


def own_instructions(profile: Profile, allocator: Allocator) -> int:
    if allocator.library is None:
        return sum(
            count
            for (file, function), count in profile.own.items()
            if Path(file).name == LIBC and OF_MALLOC.fullmatch(plain(function))
        )
    libraries = [allocator.library, *map(allocator.library.with_name, allocator.needed)]
    files = {each.resolve().name for each in libraries}
    return sum(count for where, count in profile.own.items() if _is_in(*where, files))


def _is_in(file: str, function: str, names: set[str]) -> bool:
    """hakmem has a section besides .text: there callgrind knows the functions' names, but not the file."""
    return Path(file).name in names or (file == "???" and not function.startswith("0x"))


def allocating_calls(profile: Profile) -> int:
    """Counts them in a run on glibc, whose functions have one name each."""
    return sum(count for where, count in profile.calls.items() if _is_allocating(*where))


# ---- the table --------------------------------------------------------------------------------------


def missing() -> str:
    return "" if find_program("valgrind") else "valgrind is not installed: Debian package valgrind"


def count_row(program: CommandProgram, allocators: Sequence[Allocator], tell: Tell) -> Row:
    """glibc is among the allocators: its run counts the calls.  Raises RunError if that run fails."""
    return _callgrind_rows(program, allocators, tell, caches=False)[0]


def _callgrind_rows(
    program: CommandProgram, allocators: Sequence[Allocator], tell: Tell, *, caches: bool
) -> list[Row]:
    program.prepare(Length(seconds=0.0, quick=True))
    glibc = next(each for each in allocators if each.library is None)
    first = profile_of(program, glibc, caches=caches)
    calls = allocating_calls(first)
    if not calls:
        raise RunError("callgrind saw no call of malloc")
    own = Row(program.name, calls, {})
    misses = {label: Row(f"{program.name} {label}", calls, {}) for label in MISSES} if caches else {}
    for allocator in allocators:
        profile = None
        try:
            profile = first if allocator is glibc else profile_of(program, allocator, caches=caches)
        except RunError as error:
            tell(f"{program.name}, {allocator.name}: {error}")
        own.figures[allocator.name] = own_instructions(profile, allocator) / calls if profile else None
        for label, row in misses.items():
            sums = [profile.sums[event] for event in MISSES[label]] if profile else []
            row.figures[allocator.name] = sum(sums) / calls if profile else None
    return [own, *misses.values()]


def system_calls_of(program: CommandProgram, allocator: Allocator) -> int:
    """In all processes of a quick job.  Raises RunError."""
    with tempfile.TemporaryDirectory(prefix="hakmem-strace-") as folder:
        program.run(allocator, program.quick, {}, (*STRACE, f"{folder}/counts"))
        *_, total = Path(folder, "counts").read_text().splitlines()
    return int(total.split()[3])


def _kernel_rows(program: CommandProgram, allocators: Sequence[Allocator], tell: Tell) -> list[Row]:
    """Page faults, and system calls where strace is there."""
    faults: dict[str, float | None] = {}
    calls: dict[str, float | None] = {}
    for allocator in allocators:
        try:
            faults[allocator.name] = program.run(allocator, program.quick, {})["minor_faults"]
            if find_program(STRACE[0]):
                calls[allocator.name] = system_calls_of(program, allocator)
        except RunError as error:
            tell(f"{program.name}, {allocator.name}: {error}")
            faults[allocator.name] = calls[allocator.name] = None
    found = {"faults": faults, "system calls": calls}
    return [Row(f"{program.name} {label}", int(of["glibc"] or 0), of) for label, of in found.items() if of]


def count_rows(program: CommandProgram, allocators: Sequence[Allocator], tell: Tell) -> list[Row]:
    """Raises RunError if the run on glibc fails."""
    rows = _callgrind_rows(program, allocators, tell, caches=True)
    return [*rows, *_kernel_rows(program, allocators, tell)]


COUNT = Count(
    title="Instructions in the allocator and misses of simulated caches, a call of malloc with its free",
    base="calls",
    tool="callgrind",
    missing=missing,
    rows=lambda program, allocators, _length, tell: count_rows(program, allocators, tell),
)
