"""A kernel without one of the calls that hakmem can do without: the same program runs as if it were there.

test_refusals.py refuses each single call, as if memory or rights were lacking; here one kind is missing from
the beginning to the end."""

import mmap
import re
from pathlib import Path

import pytest
import target
from kernel_calls import taking_calls
from modes import INCLUDE_TESTS
from results import Compile, Run, Tally

HERE = Path(__file__).resolve().parent
LOAD = ("concurrency/fuzz.c", "1", "4", "4", "3000")
MOVES = ("memory/realloc_doubling.c",)
LOADS = {
    "mremap": MOVES,
    "MREMAP_DONTUNMAP": MOVES,
    "MADV_DONTNEED": ("api/calloc_zero.c",),
    "MADV_HUGEPAGE": ("memory/memory_comes_back.c", "trim", "main"),
}
ROUNDS = {"HAKMEM_DECAY_MS": "0", "HAKMEM_PREFAULT": "1", "HAKMEM_HELPER_THREAD": "1"}
GUARDED = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
MODES = {"default": {}, "rounds": ROUNDS, "guarded": GUARDED, "hardened": {"HAKMEM_HARDEN": "2"}}

MADV_GUARD_INSTALL = 102
THP_MODES = Path("/sys/kernel/mm/transparent_hugepage/enabled")

# Each with a mode in which it is asked for.  Of the calls that docs/RELIABILITY.md lists, those that set a
# thread's scheduler and processors are only asked of processes with settings of their own.
ABSENT = {
    "membarrier": "rounds",
    "mincore": "rounds",
    "getrandom": "default",
    "gettid": "default",
    "openat": "default",
    "prctl": "rounds",
    "sched_getaffinity": "default",
    "sched_getscheduler": "rounds",
    "mremap": "default",
    "MADV_DONTNEED": "rounds",
    "MADV_HUGEPAGE": "default",
    "MADV_NOHUGEPAGE": "rounds",
    "MADV_POPULATE_WRITE": "rounds",
    "MADV_GUARD_INSTALL": "guarded",
    "MADV_GUARD_REMOVE": "guarded",
    "MADV_WIPEONFORK": "default",
    "MAP_FIXED_NOREPLACE": "default",
    "MREMAP_DONTUNMAP": "rounds",
}
# Any kernel has them, whatever its age; or only the keeper asks for them, which has tests of its own.
EVERYWHERE = set(
    """
    MADV_NORMAL MREMAP_FIXED MREMAP_MAYMOVE brk chdir clock_gettime close connect fcntl futex getcpu getpid
    get_robust_list getsockopt mprotect ppoll pread64 prlimit64 read readlinkat rt_sigaction
    rt_sigprocmask sched_setaffinity sched_setscheduler sendto setsid socket tgkill wait4 write
    """.split()
)
KEEPERS = {"close_range"}


def test_every_call_is_here(root: Path) -> None:
    text = "".join(path.read_text() for path in (root / "src/os").glob("os_linux*.c"))
    asked = re.findall(r"\bSYS_(\w+)|\b(MADV_\w+|MREMAP_\w+|MAP_FIXED_NOREPLACE)", text)
    assert {call or form for call, form in asked} | {"mremap"} == ABSENT.keys() | EVERYWHERE | KEEPERS


def has_guard_regions() -> bool:
    if target.NAME:
        return False  # its kernels are older
    with mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as page:
        try:
            page.madvise(MADV_GUARD_INSTALL)
        except OSError:
            return False
    return True


@pytest.mark.parametrize("name", ABSENT)
def test_absent(name: str, compile_c: Compile, plain: Run, lib: Path, tally: Tally) -> None:
    if name == "MADV_GUARD_REMOVE" and not has_guard_regions():
        pytest.skip("asked for where the kernel has guard regions: Linux 6.13")
    if name == "MADV_HUGEPAGE" and "[madvise]" not in THP_MODES.read_text():
        pytest.skip("asked for in the mode madvise")
    shim = compile_c(HERE / "absent.c", INCLUDE_TESTS, "-shared", "-fPIC")
    source, *arguments = LOADS.get(name, LOAD)
    program = compile_c(HERE.parent / source, INCLUDE_TESTS)
    environment = MODES[ABSENT[name]] | {"ABSENT": name} | taking_calls(shim, lib)
    result = plain([program, *arguments], env=environment, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert int(result.stdout) > 0, f"{name} is not asked for: it was not missed"
    tally(int(result.stdout), "faults")
