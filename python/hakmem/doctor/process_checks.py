"""Checks of `hakmem doctor PID`: does the process use hakmem, and which obstacles are there?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.sizes import bytes_text, share_text
from hakmem.census.figures import Snapshot
from hakmem.census.limits import limit_mark, limit_notes
from hakmem.doctor.findings import Finding, advice, map_count, memory_limit, ok, problem
from hakmem.doctor.option_checks import option_findings
from hakmem.doctor.runtimes import GO, runtime_finding, runtime_in
from hakmem.doctor.several import several_findings
from hakmem.launch.preload import misfit
from hakmem.target.allocators import HAKMEM, STATIC, Allocator, detect
from hakmem.target.cgroup import cgroup_limits
from hakmem.target.elf import open_elf
from hakmem.target.locate import executable_of
from hakmem.target.process import Mapping, Process, kib

MAX_MAP_COUNT = Path("/proc/sys/vm/max_map_count")
UNLIMITED = "unlimited"
LIMITS_SEEN = {"Max address space": "ulimit -v", "Max data size": "ulimit -d"}
SECCOMP = {"0": "none", "1": "strict: read, write and exit only", "2": "a filter"}
# Lines of /proc/PID/status, with the words for none, for some of the memory, and the reason to care.
SET_ASIDE = (
    ("locked memory", "VmLck", "", "(mlock)", "locked pages are not purged: RSS stays high"),
    ("swap", "VmSwap", " of its memory is swapped out", "of its memory is swapped out",
     "the machine is short of memory"),
)  # fmt: skip
PRELOAD = "LD_PRELOAD"
# Where the loader looks for a library without a path, unless it was told of other folders.
LOADERS_FOLDERS = tuple(
    f"{root}{folder}" for root in ("", "usr/", "usr/local/") for folder in ("lib", "lib/*", "lib64")
)


def process_findings(pid: int) -> list[Finding]:
    """Raises AccessRefusedError or ProcessGoneError."""
    process = Process(pid)
    if not process.has_memory:
        raise ProcessGoneError(f"process {pid} has no memory: it is a kernel thread, or has ended")
    environment, maps, status = process.environment(), process.maps(), process.status()
    allocator = detect(process)
    found = [_allocator(process, allocator, environment)]
    found += several_findings(process, maps) if allocator.name == HAKMEM else []
    found += _heap(process) if allocator.may_be_glibc else []
    snapshot = _snapshot(process) if allocator.name == HAKMEM else None
    if snapshot is not None:
        found += _limits(snapshot)
    found += option_findings(environment)
    found += _changed_by_itself(snapshot)
    found += _runtime(allocator, process, maps, environment)
    found.append(_map_count(len(maps)))
    found += _resource_limits(process)
    found.append(memory_limit(cgroup_limits(membership=process.path("cgroup"))))
    found += [_huge_pages(process, status), _seccomp(status, snapshot), *_set_aside(status)]
    process.check_same()
    return found


def _heap(process: Process) -> Iterator[Finding]:
    """Whether glibc's heap is whole; nothing where it cannot be walked."""
    from hakmem.target.glibc import walk_of

    try:
        heap = walk_of(process.pid)
    except HakmemError:
        process.check_same()
        return
    if heap.broken:
        yield problem("heap", heap.damage_text, "HAKMEM_HARDEN=1 hakmem run -- … stops at the write")
    else:
        share = share_text(heap.explained_share, 1)
        yield ok("heap", f"{share} of glibc's chunks follow each other, none is broken")


def _snapshot(process: Process) -> Snapshot | None:
    from hakmem.census.snapshot import open_process, take  # with numpy, which other processes do not need

    try:
        return take(open_process(process.pid), detail="counters")
    except HakmemError:
        process.check_same()
        return None  # of another format: reported under `allocator`


def _allocator(process: Process, allocator: Allocator, environment: dict[str, str]) -> Finding:
    if allocator.name == HAKMEM:
        return ok("allocator", f"hakmem {allocator.version} ({process.name})")
    found = f"{process.name} uses {allocator.name}, not hakmem"
    if "hakmem" in environment.get(PRELOAD, ""):
        why, fix = _why_not_preloaded(allocator, process, environment[PRELOAD])
        return problem("allocator", f"{found}, despite {PRELOAD}={environment[PRELOAD]}: {why}", fix)
    fix = "build it without its own malloc" if allocator.is_bundled else "start it with hakmem run"
    return advice("allocator", found, f"{fix}; hakmem doctor -- PROGRAM shows what hinders it")


def _why_not_preloaded(allocator: Allocator, process: Process, value: str) -> tuple[str, str]:
    """And what to do.  The library is looked for where the process would: in its own file system."""
    if allocator.name == STATIC:
        return "the program is linked statically", "hakmem doctor -- PROGRAM shows what to do"
    name = next(name for name in re.split("[ :]", value) if "hakmem" in name)
    root, fix = (
        process.path("root"),
        "start it with hakmem run, or write the path of hakmem run --library",
    )
    if "/" not in name and not any(any(root.glob(f"{folder}/{name}")) for folder in LOADERS_FOLDERS):
        return f"the loader finds no {name} where it looks", fix
    if name.startswith("/"):
        library = root / name.lstrip("/")
        if not os.path.isfile(library):
            return f"there is no {name}", fix
        program = open_elf(process.path("exe"))
        path = Path(executable_of(process, ()))
        trap = misfit(path, program, library) if program is not None else None
        if trap is not None:
            return trap.what.replace(str(library), name), trap.advice
    return "the loader ignored it", "hakmem doctor -- PROGRAM shows why"


def _limits(snapshot: Snapshot) -> Iterator[Finding]:
    limits = snapshot.limits
    if limits is None:
        return
    for note in limit_notes(limits):
        yield problem("limits", note, "hakmem why shows what holds the memory")
    if not limit_notes(limits):
        yield ok("limits", limit_mark(limits) or "none; no request was refused")


def _changed_by_itself(snapshot: Snapshot | None) -> Iterator[Finding]:
    """Options that are not in its environment: a program may overwrite it, or set options in hakmem."""
    for item in snapshot.options_changed if snapshot else ():
        if item.source != "environment":
            yield ok("options", f"in force: {item.variable}={item.value} (default {item.default or 'none'})")


def _runtime(
    allocator: Allocator, process: Process, maps: list[Mapping], environment: dict[str, str]
) -> Iterator[Finding]:
    found = runtime_in(process, maps)
    if found is None and allocator.name == GO.name:
        found = GO
    if found is not None:
        yield runtime_finding(found, environment)


def _map_count(count: int) -> Finding:
    limit = int(MAX_MAP_COUNT.read_text())
    found = f"{count:,} mappings of {limit:,} (vm.max_map_count)"
    return map_count("mappings", found, count, limit)


def _resource_limits(process: Process) -> Iterator[Finding]:
    rows = process.limits()
    limited = [name for name in LIMITS_SEEN if rows.get(name, UNLIMITED) != UNLIMITED]
    for name in limited:
        found = f"{name.removeprefix('Max ')}: {bytes_text(int(rows[name]))}"
        remedy = f"run {LIMITS_SEEN[name]} unlimited before starting it, or prlimit"
        yield advice("resource limits", found, remedy)
    if not limited:
        yield ok("resource limits", "none on address space and data")


def _huge_pages(process: Process, status: dict[str, str]) -> Finding:
    if status.get("THP_enabled") == "0":
        return ok("huge pages", "none: disabled by the process (PR_SET_THP_DISABLE)")
    return ok("huge pages", f"{bytes_text(process.smaps_rollup().get('AnonHugePages', 0))} of its memory")


def _seccomp(status: dict[str, str], snapshot: Snapshot | None) -> Finding:
    mode = status.get("Seccomp", "0")
    found = SECCOMP.get(mode, mode)
    if mode == "0" or snapshot is None:
        return ok("system call filter", found)
    is_confined = bool(snapshot.options.get("confined"))
    return advice(
        "system call filter",
        f"{found}{'; HAKMEM_CONFINED=1' if is_confined else ''}",
        "hakmem then restricts itself to the system calls that every malloc needs, if it notices: if the "
        "filter is installed without the C library's prctl, start with HAKMEM_CONFINED=1",
    )


def _set_aside(status: dict[str, str]) -> Iterator[Finding]:
    """Memory that is locked or swapped out."""
    for name, row, none, some, why in SET_ASIDE:
        size = kib(status.get(row))
        yield advice(name, f"{bytes_text(size)} {some}", why) if size else ok(name, f"none{none}")
