"""What `hakmem doctor` looks at: settings of the machine, of the container, of this session, of a program.

Each check returns one Finding: what was found, whether it is in hakmem's way, and what to do.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hakmem.base.errors import AccessRefusedError, HakmemError, ProcessGoneError
from hakmem.base.sizes import bytes_text
from hakmem.doctor.findings import Finding, Verdict, advice, ok, problem
from hakmem.doctor.option_checks import option_findings
from hakmem.doctor.runtimes import GO, GO_SYMBOL, runtime_finding, runtime_of
from hakmem.launch.preload import Examined, Trap, examine
from hakmem.target.access import SCOPE_ADVICE, has_yama, ptrace_scope
from hakmem.target.cgroup import Limits, cgroup_limits
from hakmem.target.elf import open_elf
from hakmem.target.library import find_library
from hakmem.target.process import all_processes

VM = Path("/proc/sys/vm")
THP = Path("/sys/kernel/mm/transparent_hugepage")
FULL_SHARE = 0.9  # of a limit: what is fuller is a problem
STRICT_OVERCOMMIT = 2
USUAL_PAGE_BYTES = 4096
LOADER_TIMEOUT_S = 10


def machine_findings() -> list[Finding]:
    return [*(check() for check in CHECKS), *option_findings(os.environ)]


# ---- the machine -------------------------------------------------------------------------------------


def check_kernel() -> Finding:
    return ok("kernel", f"Linux {platform.release()} on {platform.machine()}")


def check_page_size() -> Finding:
    size = resource.getpagesize()
    if size == USUAL_PAGE_BYTES:
        return ok("page size", bytes_text(size))
    return advice("page size", bytes_text(size), "memory goes back in larger pieces: RSS is somewhat higher")


def check_huge_pages() -> Finding:
    mode = _chosen(THP / "enabled")
    if mode is None:
        return ok("transparent huge pages", "this kernel has none")
    if mode == "always":
        return ok(
            "transparent huge pages", "always: hakmem lets them in only where 2 MiB are used as a whole"
        )
    if mode == "never":
        return ok("transparent huge pages", "never: HAKMEM_THP=1 has no effect")
    return ok("transparent huge pages", f"{mode}: only where a program asks (HAKMEM_THP=1 makes hakmem ask)")


def check_overcommit() -> Finding:
    if _number(VM / "overcommit_memory") != STRICT_OVERCOMMIT:
        return ok("overcommit", "not strict: address space costs nothing")
    limit, used = (_meminfo(name) for name in ("CommitLimit", "Committed_AS"))
    found = f"strict: {bytes_text(used)} of {bytes_text(limit)} promised"
    if limit and used / limit > FULL_SHARE:
        return problem("overcommit", found, "mmap will fail soon; raise vm.overcommit_ratio, or add swap")
    return advice(
        "overcommit", found, "hakmem gives free address space back too, which costs more system calls"
    )


def check_map_count() -> Finding:
    """The most mappings that any process has, against what the kernel allows to each."""
    limit = _number(VM / "max_map_count") or 0
    counts = {}
    for process in all_processes():
        try:
            counts[process.pid] = len(process.maps())
        except (AccessRefusedError, ProcessGoneError):
            continue
    pid, most = max(counts.items(), key=lambda item: item[1], default=(0, 0))
    found = f"vm.max_map_count is {limit:,}; the most that a process has is {most:,} (PID {pid})"
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
        return problem("swap", found, "the machine is short of memory: see hakmem top for who has it")
    return ok("swap", found)


def check_memory() -> Finding:
    total, available = _meminfo("MemTotal"), _meminfo("MemAvailable")
    found = f"{bytes_text(available)} of {bytes_text(total)} available"
    if total and available / total < 1 - FULL_SHARE:
        return problem("memory", found, "the machine is short of memory: see hakmem top for who has it")
    return ok("memory", found)


def check_access() -> Finding:
    scope = ptrace_scope()
    found = f"kernel.yama.ptrace_scope is {scope}" if has_yama() else "nothing restricts it"
    if os.geteuid() == 0 or scope == 0:
        return ok("access", f"{found}: the tool can look into your processes")
    return advice(
        "access", f"{found}: {SCOPE_ADVICE.get(scope, 'restricted')}", "hakmem run works; the rest needs sudo"
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
            "memory limit", f"{found}; {limits.oom_kills} processes were killed", _raise_limit(limits)
        )
    if used / limits.memory_bytes > FULL_SHARE:
        return problem("memory limit", found, _raise_limit(limits))
    return ok("memory limit", found)


def _raise_limit(limits: Limits) -> str:
    return f"raise the limit ({limits.memory_setting}), or give memory back sooner: HAKMEM_DECAY_MS=100"


def check_cpu_quota() -> Finding:
    limits, cores = cgroup_limits(), len(os.sched_getaffinity(0))
    if limits.cpus is None:
        return ok("CPU quota", f"none; {cores} cores ({limits.kind})")
    found = f"{limits.cpus:.3g} CPUs of {cores} cores ({limits.kind})"
    if limits.cpus < 1:
        return advice("CPU quota", found, "threads stand still for parts of each period; latencies show it")
    return ok("CPU quota", found)


# ---- this session --------------------------------------------------------------------------------------


def check_address_space() -> Finding:
    return _limit(
        "address space limit",
        resource.RLIMIT_AS,
        "ulimit -v unlimited; hakmem makes its window smaller meanwhile (HAKMEM_WINDOW_GIB)",
    )


def check_data_limit() -> Finding:
    return _limit("data limit", resource.RLIMIT_DATA, "ulimit -d unlimited; all of the heap counts as data")


def check_locked_limit() -> Finding:
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return ok("locked memory limit", f"{_limit_text(soft)}; matters to programs that call mlockall only")


def check_stack_limit() -> Finding:
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if soft == resource.RLIM_INFINITY:
        return advice("stack limit", "unlimited: mappings lie in the kernel's legacy order", "ulimit -s 8192")
    return ok("stack limit", _limit_text(soft))


def check_environment() -> Finding:
    """Settings that others' mallocs read, and preloads that are there already."""
    preloads = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    with suppress(OSError):
        preloads += Path("/etc/ld.so.preload").read_text().split()
    mallocs = [name for name in preloads if "malloc" in name and "hakmem" not in name]
    if mallocs:
        return problem("environment", f"preloaded already: {', '.join(mallocs)}", "take it out of LD_PRELOAD")
    ignored = [
        name for name in os.environ if name.startswith("MALLOC_") or name in ("MALLOC_CONF", "GLIBC_TUNABLES")
    ]
    if ignored:
        return advice(
            "environment", f"{', '.join(ignored)} set", "hakmem does not read them; see docs/OPTIONS.md"
        )
    return ok("environment", "nothing that concerns malloc")


def check_library() -> Finding:
    """Is it there, and does the loader take it?"""
    try:
        library = find_library()
    except HakmemError as error:
        return problem("library", "libhakmem.so is missing", str(error))
    step = subprocess.run(
        ["/bin/true"],
        env={"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=LOADER_TIMEOUT_S,
        check=False,
    )
    if step.returncode or "cannot be preloaded" in step.stderr:
        why = step.stderr.strip().splitlines()[-1] if step.stderr.strip() else f"status {step.returncode}"
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
        library = None  # said by check_library
    examined = examine(words, library)
    found = [_program(examined.program, examined.scripts), *map(_of_trap, examined.traps)]
    if not examined.traps:
        found.append(ok("preload", "nothing in the way"))
    found += _runtime(examined)
    return found


def _program(program: Path, scripts: Sequence[Path]) -> Finding:
    if not scripts:
        return ok("program", str(program))
    return ok("program", f"{scripts[0]} is a script: {program} runs it, on hakmem")


def _runtime(examined: Examined) -> list[Finding]:
    """The allocator that a language brings above malloc."""
    program = examined.program.resolve()
    found = runtime_of(program.name, (path.name for path in examined.libraries))
    file = open_elf(program)
    if found is None and file is not None and file.symbol(GO_SYMBOL) is not None:
        found = GO
    return [runtime_finding(found, os.environ)] if found else []


def _of_trap(trap: Trap) -> Finding:
    return Finding(trap.name, Verdict.PROBLEM if trap.is_fatal else Verdict.ADVICE, trap.what, trap.advice)


# ---- reading -------------------------------------------------------------------------------------------


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
