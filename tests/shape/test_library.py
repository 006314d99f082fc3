"""What the built library shows to the world: symbols, dependencies, thread-local storage, hardening."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from results import captured

STATIC_TLS_MAX_BYTES = 18
DEBUG_TLS_MAX_BYTES = 24
# What libhakmem.so alone replaces (override_threads.c, override_prctl.c, override_load.c).
SHARED_ONLY = set("pthread_create thrd_create __register_atfork unshare setns prctl dlopen dlmopen".split())


def output_of(*words: str | Path) -> str:
    return captured(words, check=True).stdout


def listed_symbols(root: Path, name: str = "src/api/hakmem.map") -> set[str]:
    """The global names of the version script."""
    script = re.sub(r"/\*.*?\*/|#[^\n]*", "", (root / name).read_text(), flags=re.DOTALL)
    body = script[script.index("global:") + len("global:") : script.index("local:")]
    return set(re.findall(r"[\w.]+", body))


def exported_symbols(library: Path) -> set[str]:
    """With their versions, which none must have: a versioned malloc would not replace libc's."""
    return {line.split()[-1] for line in output_of("nm", "-D", "--defined-only", library).splitlines()}


@pytest.fixture(scope="module", params=["lib", "debug_lib"])
def library(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def test_exported_symbols_are_those_listed(library: Path, root: Path) -> None:
    assert exported_symbols(library) == listed_symbols(root)


def test_static_library_keeps_the_same_symbols_visible(static_lib: Path, root: Path) -> None:
    lines = output_of("readelf", "--syms", "--wide", static_lib).splitlines()
    visible = {line.split()[7] for line in lines if re.search(r" (GLOBAL|WEAK) +DEFAULT +\d+ ", line)}
    assert visible == listed_symbols(root) - SHARED_ONLY


def test_it_needs_libc_alone(library: Path) -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", library))
    assert {name for name in needed if not name.startswith("ld-linux")} == {"libc.so.6"}


def test_undefined_symbols_are_the_c_librarys_or_weak(library: Path) -> None:
    lines = output_of("nm", "-D", "--undefined-only", library).splitlines()
    strong = [name for kind, name in (line.split() for line in lines) if kind == "U"]
    assert strong
    assert [name for name in strong if "@GLIBC_" not in name] == []


def test_static_tls_is_small(library: Path, lib: Path) -> None:
    """The initial-exec TLS of a library that is loaded late comes from a surplus of 1,664 bytes in libc."""
    segments = output_of("readelf", "--segments", "--wide", library)
    found = re.search(r"^ +TLS +(?:0x[0-9a-f]+ +){4}(0x[0-9a-f]+)", segments, re.MULTILINE)
    assert found, "no TLS segment: where is the thread's heap?"
    assert int(found[1], 16) <= (STATIC_TLS_MAX_BYTES if library == lib else DEBUG_TLS_MAX_BYTES)


def test_it_is_hardened_and_stays_loaded(library: Path) -> None:
    dynamic = output_of("readelf", "--dynamic", library)
    assert re.search(r"\(FLAGS_1\).*NOW.*NODELETE", dynamic)
    assert "TEXTREL" not in dynamic
    segments = output_of("readelf", "--segments", "--wide", library)
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK.* RW +0x", segments), "the stack must not be executable"


def test_it_says_its_version(library: Path, root: Path, preload: Callable, compile_c: Callable) -> None:
    header = (root / "include/hakmem/hakmem.h").read_text()
    version = ".".join(re.findall(r"#define HAKMEM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    program = compile_c(Path(__file__).with_name("version.c"), library, f"-Wl,-rpath,{library.parent}")
    assert preload([program], library=library).stdout == f"{version}\n"
