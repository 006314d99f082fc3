"""Checks of `hakmem doctor`: settings of the machine, the container, this session and a program.

Each check returns one Finding: the fact, whether it hinders hakmem, and the remedy.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from hakmem.base.errors import AccessRefusedError, HakmemError, ProcessGoneError
from hakmem.base.files import number_in
from hakmem.base.sizes import bytes_text, counted
from hakmem.doctor.findings import (
    FULL_SHARE,
    Finding,
    Verdict,
    advice,
    map_count,
    memory_limit,
    of_limit,
    ok,
    problem,
)
from hakmem.doctor.option_checks import loaded, option_findings
from hakmem.doctor.runtimes import GO, GO_SYMBOL, runtime_finding, runtime_of
from hakmem.launch.preload import Examined, examine
from hakmem.target.access import SCOPE_ADVICE, has_yama, ptrace_scope
from hakmem.target.cgroup import cgroup_limits
from hakmem.target.elf import open_elf
from hakmem.target.library import find_library
from hakmem.target.process import all_processes, machine_memory

VM = Path("/proc/sys/vm")
THP = Path("/sys/kernel/mm/transparent_hugepage")
STRICT_OVERCOMMIT = 2
USUAL_PAGE_BYTES = 4096
SHORT = "the machine is short of memory: hakmem ps shows the largest processes"
HUGE_PAGES = {
    "": "not supported by this kernel",
    "always": "always: hakmem permits them only where 2 MiB are used as a whole (HAKMEM_THP=0: nowhere)",
    "madvise": "madvise: hakmem requests them where a heap grows beyond 64 MiB (HAKMEM_THP=0: nowhere)",
    "never": "never: a heap of more than 64 MiB would be faster with madvise",
}
# Limits of this session, and what to do about them; without advice they hinder few programs.
SESSION_LIMITS = (
    ("address space limit", resource.RLIMIT_AS,
     "ulimit -v unlimited; until then hakmem uses a smaller window (HAKMEM_WINDOW_GIB)"),
    ("data limit", resource.RLIMIT_DATA, "ulimit -d unlimited; the whole heap counts as data"),
    ("locked memory limit", resource.RLIMIT_MEMLOCK, ""),
)  # fmt: skip


def machine_findings() -> list[Finding]:
    return [*(check() for check in CHECKS), *option_findings(os.environ)]


# ---- the machine -------------------------------------------------------------------------------------


def check_kernel() -> Finding:
    return ok("kernel", f"Linux {platform.release()} on {platform.machine()}")


def check_page_size() -> Finding:
    size = resource.getpagesize()
    if size == USUAL_PAGE_BYTES:
        return ok("page size", bytes_text(size))
    return advice("page size", bytes_text(size), "memory is purged in larger units: RSS is somewhat higher")


def check_huge_pages() -> Finding:
    try:  # "always [madvise] never"
        mode = (THP / "enabled").read_text().partition("[")[2].partition("]")[0]
    except OSError:
        mode = ""
    return ok("transparent huge pages", HUGE_PAGES.get(mode, mode))


def check_overcommit() -> Finding:
    if number_in(VM / "overcommit_memory") != STRICT_OVERCOMMIT:
        return ok("overcommit", "not strict: address space costs nothing")
    memory = machine_memory()
    limit, used = memory.get("CommitLimit", 0), memory.get("Committed_AS", 0)
    found = f"strict: {bytes_text(used)} of {bytes_text(limit)} committed"
    if limit and used / limit > FULL_SHARE:
        return problem("overcommit", found, "mmap will fail soon; raise vm.overcommit_ratio, or add swap")
    return advice("overcommit", found, "hakmem unmaps free address space too, which costs more system calls")


def check_map_count() -> Finding:
    """The most mappings of any process, against the kernel's limit per process."""
    limit = number_in(VM / "max_map_count") or 0
    counts = {}
    for process in all_processes():
        with suppress(AccessRefusedError, ProcessGoneError):
            counts[process.pid] = len(process.maps())
    pid, most = max(counts.items(), key=lambda item: item[1], default=(0, 0))
    found = f"vm.max_map_count is {limit:,}; the maximum in use is {most:,} (PID {pid})"
    return map_count("map count", found, most, limit)


def check_swap() -> Finding:
    memory = machine_memory()
    total = memory.get("SwapTotal", 0)
    if not total:
        return ok("swap", "none")
    used = total - memory.get("SwapFree", 0)
    found = f"{bytes_text(used)} of {bytes_text(total)} used, vm.swappiness is {number_in(VM / 'swappiness')}"
    return of_limit("swap", found, used / total, SHORT)


def check_memory() -> Finding:
    memory = machine_memory()
    total, available = memory.get("MemTotal", 0), memory.get("MemAvailable", 0)
    found = f"{bytes_text(available)} of {bytes_text(total)} available"
    return of_limit("memory", found, 1 - available / total if total else 0, SHORT)


def check_access() -> Finding:
    scope = ptrace_scope()
    found = f"kernel.yama.ptrace_scope is {scope}" if has_yama() else "unrestricted"
    if os.geteuid() == 0 or scope == 0:
        return ok("access", f"{found}: the tool can read your processes")
    said = SCOPE_ADVICE.get(scope, "restricted")
    return advice("access", f"{found}: {said}", "hakmem run works; other commands need sudo")


# ---- the container -----------------------------------------------------------------------------------


def check_cpu_quota() -> Finding:
    limits, cores = cgroup_limits(), len(os.sched_getaffinity(0))
    if limits.cpus is None:
        return ok("CPU quota", f"none; {counted(cores, 'core')} ({limits.kind})")
    found = f"{limits.cpus:.3g} CPUs of {counted(cores, 'core')} ({limits.kind})"
    said = "threads are throttled during part of each period, which shows in latencies"
    return advice("CPU quota", found, said) if limits.cpus < 1 else ok("CPU quota", found)


# ---- this session --------------------------------------------------------------------------------------


def check_session_limit(name: str, which: int, what_to_do: str) -> Finding:
    soft = resource.getrlimit(which)[0]
    found = "none" if soft == resource.RLIM_INFINITY else bytes_text(soft)
    if not what_to_do:
        return ok(name, f"{found}; matters only to programs that call mlockall")
    return ok(name, found) if found == "none" else advice(name, found, what_to_do)


def check_stack_limit() -> Finding:
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if soft == resource.RLIM_INFINITY:
        return advice("stack limit", "unlimited: the kernel uses its legacy mapping layout", "ulimit -s 8192")
    return ok("stack limit", bytes_text(soft))


def check_environment() -> Finding:
    """Variables of other mallocs, and libraries that are preloaded already."""
    preloads = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    with suppress(OSError):
        preloads += Path("/etc/ld.so.preload").read_text().split()
    mallocs = [name for name in preloads if "malloc" in name and "hakmem" not in name]
    if mallocs:
        said = f"another malloc is preloaded: {', '.join(mallocs)}"
        return problem("environment", said, "remove it from LD_PRELOAD")
    ignored = [name for name in os.environ if name.startswith("MALLOC_") or name == "GLIBC_TUNABLES"]
    if ignored:
        return advice("environment", f"{', '.join(ignored)} set", "hakmem ignores them; see docs/OPTIONS.md")
    return ok("environment", "no variables that concern malloc")


def check_library() -> Finding:
    """Is it installed, and does the loader accept it?"""
    try:
        library = find_library()
    except HakmemError as error:
        return problem("library", "libhakmem.so is missing", str(error))
    try:
        step = loaded(library, {})
    except HakmemError as error:
        return problem("library", "its path cannot be in LD_PRELOAD", str(error))
    except (OSError, subprocess.TimeoutExpired) as error:
        return advice("library", f"{library} is not checked: {error}", "try hakmem run -- PROGRAM")
    if step.returncode or "cannot be preloaded" in step.stderr:
        why = (step.stderr.strip().splitlines() or [f"exit status {step.returncode}"])[-1]
        return problem("library", f"{library} does not load: {why}", "build it on this machine: make")
    return ok("library", str(library))


CHECKS: Sequence[Callable[[], Finding]] = (
    check_kernel,
    check_page_size,
    check_huge_pages,
    check_overcommit,
    check_map_count,
    check_memory,
    check_swap,
    lambda: memory_limit(cgroup_limits()),
    check_cpu_quota,
    *(partial(check_session_limit, *row) for row in SESSION_LIMITS),
    check_stack_limit,
    check_access,
    check_environment,
    check_library,
)


# ---- a program -----------------------------------------------------------------------------------------


def program_findings(words: Sequence[str]) -> list[Finding]:
    try:
        library = find_library()
    except HakmemError:
        library = None  # reported by check_library
    examined = examine(words, library)
    program = str(examined.program)
    if examined.scripts:
        program = f"{examined.scripts[0]} is a script; its interpreter {program} runs on hakmem"
    traps = [
        Finding(trap.name, Verdict.PROBLEM if trap.is_fatal else Verdict.ADVICE, trap.what, trap.advice)
        for trap in examined.traps
    ]
    return [ok("program", program), *(traps or [ok("preload", "possible")]), *_runtime(examined)]


def _runtime(examined: Examined) -> list[Finding]:
    """The allocator of a language runtime on top of malloc."""
    program = examined.program.resolve()
    found = runtime_of(program.name, (path.name for path in examined.libraries))
    file = open_elf(program)
    if found is None and file is not None and file.symbol(GO_SYMBOL) is not None:
        found = GO
    return [runtime_finding(found, os.environ)] if found else []
