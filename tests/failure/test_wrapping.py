"""Preloaded libraries wrap functions of the C library and allocate at the first call, as torsocks (syscall)
and libfaketime (clock_gettime) may: hakmem calls none of them where the allocation would wait for itself."""

from pathlib import Path

import pytest
from modes import INCLUDE_TESTS
from results import Compile, Run, captured

HERE = Path(__file__).resolve().parent

# Not functions, or called by the compiler, or found before the program starts (tests/shape/test_imports.py).
# The last two are called when the first block is allocated: that allocation would begin before they return.
# Registration caches, which wrap the calls about memory, know that an allocator may be their caller.
NOT_WRAPPED = set(
    """
    __environ environ __libc_single_threaded __errno_location _dl_find_object dlsym abort
    _ZSt15get_new_handlerv _ZSt17__throw_bad_allocv memcmp memcpy memmove memset
    mmap munmap mremap madvise
    getauxval pthread_key_create
    """.split()
)
# That many libraries wrap, and that hakmem has no need of.
WRAPPED_BY_MANY = [
    "syscall",
    "clock_gettime",
    "mprotect",
    "getrlimit",
    "sigaction",
    "sigfillset",
    "sched_getcpu",
    "sbrk",
]
OPTIONS = {"HAKMEM_HELPER_THREAD": "1", "HAKMEM_DECAY_MS": "0"}


def names_to_wrap(lib: Path) -> list[str]:
    lines = captured(["nm", "-D", "--undefined-only", lib], check=True).stdout.splitlines()
    asked = {line.split()[-1].split("@")[0] for line in lines} - NOT_WRAPPED
    assert "pthread_setspecific" in asked
    return sorted(asked) + WRAPPED_BY_MANY


@pytest.mark.parametrize("comes_first", [True, False], ids=["before", "after"])
def test_wrappers_may_allocate(comes_first: bool, compile_c: Compile, plain: Run, lib: Path) -> None:
    program = compile_c(HERE / "refused.c", INCLUDE_TESTS)
    wrapped = " ".join(f"WRAP({name})" for name in names_to_wrap(lib))
    shim = compile_c(HERE / "wrapping.c", f"-DWRAPPED={wrapped}", "-fno-builtin", "-shared", "-fPIC")
    order = [shim, lib] if comes_first else [lib, shim]
    environment = OPTIONS | {"LD_PRELOAD": " ".join(map(str, order))}
    result = plain([program], env=environment, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
