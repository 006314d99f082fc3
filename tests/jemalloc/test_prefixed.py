"""What is built in build/compat beside libhakmem.so, for programs that bring a jemalloc along."""

import re
from pathlib import Path

import pytest
from modes import INCLUDE_TESTS, assert_silent
from results import Compile, Run, captured

HERE = Path(__file__).resolve().parent
# Of Debian's libjemalloc.so.2; it has two more, hooks of jemalloc's own tests.
EXPORTED = """
aligned_alloc calloc dallocx free mallctl mallctlbymib mallctlnametomib malloc malloc_conf malloc_message
malloc_stats_print malloc_usable_size mallocx memalign nallocx posix_memalign rallocx realloc sallocx
sdallocx valloc xallocx _ZdaPv _ZdaPvRKSt9nothrow_t _ZdaPvSt11align_val_t
_ZdaPvSt11align_val_tRKSt9nothrow_t _ZdaPvm _ZdaPvmSt11align_val_t _ZdlPv _ZdlPvRKSt9nothrow_t
_ZdlPvSt11align_val_t _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdlPvm _ZdlPvmSt11align_val_t _Znam
_ZnamRKSt9nothrow_t _ZnamSt11align_val_t _ZnamSt11align_val_tRKSt9nothrow_t _Znwm _ZnwmRKSt9nothrow_t
_ZnwmSt11align_val_t _ZnwmSt11align_val_tRKSt9nothrow_t
""".split()


@pytest.fixture
def compat(lib: Path) -> Path:
    return lib.parent / "compat"


@pytest.mark.parametrize(("archive", "flags"), [("je", []), ("rjem", ["-DRUSTS"])])
def test_prefixed_archive(
    archive: str, flags: list[str], compat: Path, compile_c: Compile, plain: Run
) -> None:
    made = compile_c(
        HERE / "prefixed.c", INCLUDE_TESTS, *flags, compat / f"libhakmem-{archive}.a", "-pthread"
    )
    assert_silent(plain([made]))


def test_library_has_jemallocs_names_without_versions(compat: Path) -> None:
    library = compat / "libjemalloc.so.2"
    listed = captured(["nm", "-D", "--defined-only", library], check=True).stdout
    names = {line.split()[-1] for line in listed.splitlines()}
    assert set(EXPORTED) <= names
    assert not [name for name in names if "@" in name]
    dynamic = captured(["readelf", "--dynamic", library], check=True).stdout
    assert re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == ["libjemalloc.so.2"]
