"""Checks of `hakmem doctor`: settings of the machine, the container, this session and a program.

Each check returns one Finding: the fact, whether it hinders hakmem, and the remedy.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hakmem.base.errors import AccessRefusedError, HakmemError, ProcessGoneError
from hakmem.base.sizes import bytes_text, counted
from hakmem.doctor.findings import Finding, Verdict, advice, ok, problem
from hakmem.doctor.option_checks import loaded, option_findings
from hakmem.doctor.runtimes import GO, GO_SYMBOL, runtime_finding, runtime_of
from hakmem.launch.preload import Examined, Trap, examine
from hakmem.target.access import SCOPE_ADVICE, has_yama, ptrace_scope
from hakmem.target.cgroup import Limits, cgroup_limits
from hakmem.target.elf import open_elf
from hakmem.target.library import find_library
from hakmem.target.process import all_processes

VM = Path("/proc/sys/vm")
THP = Path("/sys/kernel/mm/transparent_hugepage")
FULL_SHARE = 0.9  # of a limit: more is a problem
STRICT_OVERCOMMIT = 2
USUAL_PAGE_BYTES = 4096


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
    mode = _chosen(THP / "enabled")
    if mode is None:
        return ok("transparent huge pages", "not supported by this kernel")
    if mode == "always":
        return ok(
            "transparent huge pages", "always: hakmem permits them only where 2 MiB are used as a whole"
        )
    if mode == "never":
        return ok("transparent huge pages", "never: HAKMEM_THP=1 has no effect")
    return ok("transparent huge pages", f"{mode}: only on request (HAKMEM_THP=1 makes hakmem request them)")


def check_overcommit() -> Finding:
    if _number(VM / "overcommit_memory") != STRICT_OVERCOMMIT:
        return ok("overcommit", "not strict: address space costs nothing")
    limit, used = (_meminfo(name) for name in ("CommitLimit", "Committed_AS"))
    found = f"strict: {bytes_text(used)} of {bytes_text(limit)} committed"
    if limit and used / limit > FULL_SHARE:
        return problem("overcommit", found, "mmap will fail soon; raise vm.overcommit_ratio, or add swap")
    return advice("overcommit", found, "hakmem unmaps free address space too, which costs more system calls")


def check_map_count() -> Finding:
    """The most mappings of any process, against the kernel's limit per process."""
    limit = _number(VM / "max_map_count") or 0
    counts = {}
    for process in all_processes():
        try:
            counts[process.pid] = len(process.maps())
        except (AccessRefusedError, ProcessGoneError):
            continue
    pid, most = max(counts.items(), key=lambda item: item[1], default=(0, 0))
    found = f"vm.max_map_count is {limit:,}; the maximum in use is {most:,} (PID {pid})"
    if limit and most / limit > FULL_SHARE:
        return problem("map count", found, f"mmap will fail soon: sudo sysctl vm.max_map_count={limit * 4}")
    return ok("map count", found)


def check_swap() -> Finding:
    total, free = _meminfo("SwapTotal"), _meminfo("SwapFree")
    if not total:
        return ok("swap", "none")
    used = total - free
    found = f"{bytes_text(used)} of {bytes_text(total)} used, vm.swappiness is {_number(VM / 'swappiness')}"
    if used / total > FULL_SHARE:
        return problem("swap", found, "the machine is short of memory: hakmem ps shows the largest processes")
    return ok("swap", found)


def check_memory() -> Finding:
    total, available = _meminfo("MemTotal"), _meminfo("MemAvailable")
    found = f"{bytes_text(available)} of {bytes_text(total)} available"
    if total and available / total < 1 - FULL_SHARE:
        return problem(
            "memory", found, "the machine is short of memory: hakmem ps shows the largest processes"
        )
    return ok("memory", found)


def check_access() -> Finding:
    scope = ptrace_scope()
    found = f"kernel.yama.ptrace_scope is {scope}" if has_yama() else "unrestricted"
    if os.geteuid() == 0 or scope == 0:
        return ok("access", f"{found}: the tool can read your processes")
    return advice(
        "access",
        f"{found}: {SCOPE_ADVICE.get(scope, 'restricted')}",
        "hakmem run works; other commands need sudo",
    )


# ---- the container -----------------------------------------------------------------------------------


def check_memory_limit() -> Finding:
    limits = cgroup_limits()
    if limits.memory_bytes is None:
        return ok("memory limit", f"none ({limits.kind})")
    used = limits.used_bytes or 0
    found = f"{bytes_text(used)} of {bytes_text(limits.memory_bytes)} used ({limits.kind})"
    if limits.oom_kills:
        return problem(
            "memory limit",
            f"{found}; {counted(limits.oom_kills, 'process was', 'processes were')} killed",
            _raise_limit(limits),
        )
    if used / limits.memory_bytes > FULL_SHARE:
        return problem("memory limit", found, _raise_limit(limits))
    return ok("memory limit", found)


def _raise_limit(limits: Limits) -> str:
    return f"raise the limit ({limits.memory_setting}), or purge sooner: HAKMEM_DECAY_MS=100"


def check_cpu_quota() -> Finding:
    limits, cores = cgroup_limits(), len(os.sched_getaffinity(0))
    if limits.cpus is None:
        return ok("CPU quota", f"none; {counted(cores, 'core')} ({limits.kind})")
    found = f"{limits.cpus:.3g} CPUs of {counted(cores, 'core')} ({limits.kind})"
    if limits.cpus < 1:
        return advice(
            "CPU quota", found, "threads are throttled during part of each period, which shows in latencies"
        )
    return ok("CPU quota", found)


# ---- this session --------------------------------------------------------------------------------------


def check_address_space() -> Finding:
    return _limit(
        "address space limit",
        resource.RLIMIT_AS,
        "ulimit -v unlimited; until then hakmem uses a smaller window (HAKMEM_WINDOW_GIB)",
    )


def check_data_limit() -> Finding:
    return _limit("data limit", resource.RLIMIT_DATA, "ulimit -d unlimited; the whole heap counts as data")


def check_locked_limit() -> Finding:
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return ok("locked memory limit", f"{_limit_text(soft)}; matters only to programs that call mlockall")


def check_stack_limit() -> Finding:
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if soft == resource.RLIM_INFINITY:
        return advice("stack limit", "unlimited: the kernel uses its legacy mapping layout", "ulimit -s 8192")
    return ok("stack limit", _limit_text(soft))


def check_environment() -> Finding:
    """Variables of other mallocs, and libraries that are preloaded already."""
    preloads = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    with suppress(OSError):
        preloads += Path("/etc/ld.so.preload").read_text().split()
    mallocs = [name for name in preloads if "malloc" in name and "hakmem" not in name]
    if mallocs:
        return problem(
            "environment", f"another malloc is preloaded: {', '.join(mallocs)}", "remove it from LD_PRELOAD"
        )
    ignored = [
        name for name in os.environ if name.startswith("MALLOC_") or name in ("MALLOC_CONF", "GLIBC_TUNABLES")
    ]
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
    if step.returncode or "cannot be preloaded" in step.stderr:
        why = (
            step.stderr.strip().splitlines()[-1] if step.stderr.strip() else f"exit status {step.returncode}"
        )
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
    check_memory_limit,
    check_cpu_quota,
    check_address_space,
    check_data_limit,
    check_locked_limit,
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
    found = [_program(examined.program, examined.scripts), *map(_of_trap, examined.traps)]
    if not examined.traps:
        found.append(ok("preload", "possible"))
    found += _runtime(examined)
    return found


def _program(program: Path, scripts: Sequence[Path]) -> Finding:
    if not scripts:
        return ok("program", str(program))
    return ok("program", f"{scripts[0]} is a script; its interpreter {program} runs on hakmem")


def _runtime(examined: Examined) -> list[Finding]:
    """The allocator of a language runtime on top of malloc."""
    program = examined.program.resolve()
    found = runtime_of(program.name, (path.name for path in examined.libraries))
    file = open_elf(program)
    if found is None and file is not None and file.symbol(GO_SYMBOL) is not None:
        found = GO
    return [runtime_finding(found, os.environ)] if found else []


def _of_trap(trap: Trap) -> Finding:
    return Finding(trap.name, Verdict.PROBLEM if trap.is_fatal else Verdict.ADVICE, trap.what, trap.advice)


# ---- helpers -------------------------------------------------------------------------------------------


def _limit(name: str, which: int, what_to_do: str) -> Finding:
    soft = resource.getrlimit(which)[0]
    if soft == resource.RLIM_INFINITY:
        return ok(name, "none")
    return advice(name, _limit_text(soft), what_to_do)


def _limit_text(soft: int) -> str:
    return "none" if soft == resource.RLIM_INFINITY else bytes_text(soft)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _chosen(path: Path) -> str | None:
    """ "always [madvise] never" → madvise."""
    try:
        return path.read_text().partition("[")[2].partition("]")[0] or None
    except OSError:
        return None


def _meminfo(name: str) -> int:
    """A line of /proc/meminfo, in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
